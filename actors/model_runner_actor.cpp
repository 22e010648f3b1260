#include "actors/model_runner_actor.hpp"

#include <exception>
#include <string>
#include <utility>

#include <caf/result.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_support.hpp"

namespace troupe {

namespace {

using Self = ModelRunnerActor::stateful_pointer<ModelRunnerState>;

/// Executes a step. An executor must not throw; if it does, or answers for another number of rows, its step has failed.
StepResult execute(StepExecutor& executor, const StepQueue::Step& step) {
  StepResult result;
  const std::int64_t started_ns = steady_now_ns();
  try {
    result = executor.execute(*step.plan, step.inputs);
  } catch (const std::exception& exception) {
    result.error = {ErrorCode::step_failed, std::string("the executor threw: ") + exception.what()};
  } catch (...) {
    result.error = {ErrorCode::step_failed, "the executor threw an exception of unknown type"};
  }
  if (result.error.code == ErrorCode::none && result.token_ids.size() != step.plan->rows.size()) {
    result.error = {ErrorCode::step_failed, "the executor returned " + std::to_string(result.token_ids.size()) +
                                                " tokens for " + std::to_string(step.plan->rows.size()) + " rows"};
  }
  result.step = step.plan->step;
  result.started_ns = started_ns;
  result.ended_ns = steady_now_ns();
  return result;
}

void run_complete_steps(Self self) {
  ModelRunnerState& state = self->state;
  while (std::optional<StepQueue::Step> step = state.queue.take()) {
    StepResult result = execute(*state.executor, *step);
    if (state.trace != nullptr) {
      state.trace->add({"execute", result.step, result.started_ns, result.ended_ns});
    }
    self->send(step->scheduler, std::move(result));
  }
}

template <class Message>
void enqueue(Self self, Message& message) {
  if (Result<void> added = self->state.queue.add(std::move(message)); !added) {
    self->quit(to_caf_error(added.error()));
    return;
  }
  run_complete_steps(self);
}

caf::result<Done> answer(const Result<void>& result) {
  return result ? caf::result<Done>(Done{}) : caf::result<Done>(to_caf_error(result.error()));
}

Result<void> make_executor(ModelRunnerState& state, const ExecutorFactory& factory) {
  Result<std::unique_ptr<StepExecutor>> executor = factory();
  if (!executor) {
    return tl::unexpected(std::move(executor.error()));
  }
  if (*executor == nullptr) {
    return fail(ErrorCode::internal, "the executor's factory returned nothing");
  }
  state.executor = std::move(*executor);
  return {};
}

Result<void> allocate_cache(ModelRunnerState& state, const CacheShape& shape) {
  if (state.executor == nullptr) {
    return fail(ErrorCode::internal, "a cache was asked for before the executor was made");
  }
  state.queue = StepQueue(shape.groups.size());
  return state.executor->allocate_cache(shape);
}

}  // namespace

StepQueue::Entry& StepQueue::entry(StepId step) {
  Entry& found = entries_[step];
  found.inputs.resize(num_groups_);
  return found;
}

Result<void> StepQueue::add(RunStep step) {
  Entry& target = entry(step.plan->step);
  if (target.plan != nullptr) {
    return fail(ErrorCode::internal, "step " + std::to_string(step.plan->step) + " was planned twice");
  }
  target.plan = std::move(step.plan);
  target.scheduler = std::move(step.scheduler);
  return {};
}

Result<void> StepQueue::add(GroupInputs inputs) {
  const auto group = static_cast<std::size_t>(inputs.group);
  if (inputs.group < 0 || group >= num_groups_) {
    return fail(ErrorCode::internal, "inputs of group " + std::to_string(inputs.group) + ", but there are " +
                                         std::to_string(num_groups_) + " groups");
  }
  Entry& target = entry(inputs.step);
  if (target.inputs[group]) {
    return fail(ErrorCode::internal, "group " + std::to_string(inputs.group) + " sent the inputs of step " +
                                         std::to_string(inputs.step) + " twice");
  }
  target.inputs[group] = std::move(inputs);
  ++target.num_inputs;
  return {};
}

std::optional<StepQueue::Step> StepQueue::take() {
  const auto oldest = entries_.begin();
  if (oldest == entries_.end() || oldest->second.plan == nullptr || oldest->second.num_inputs < num_groups_) {
    return std::nullopt;
  }
  Step step{std::move(oldest->second.plan), std::move(oldest->second.scheduler), {}};
  for (std::optional<GroupInputs>& inputs : oldest->second.inputs) {
    step.inputs.push_back(std::move(*inputs));
  }
  entries_.erase(oldest);
  return step;
}

ModelRunnerActor::behavior_type model_runner_actor(Self self, std::shared_ptr<TraceLane> trace) {
  set_quiet_handlers(self);
  self->state.trace = std::move(trace);
  return {
      [self](const MakeExecutor& message) { return answer(make_executor(self->state, message.make_executor)); },
      [self](const CacheShape& shape) { return answer(allocate_cache(self->state, shape)); },
      [self](RunStep& message) { enqueue(self, message); },
      [self](GroupInputs& message) { enqueue(self, message); },
  };
}

}  // namespace troupe
