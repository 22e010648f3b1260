#include "actors/scheduler_actor.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <caf/result.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/caf_support.hpp"
#include "actors/scheduling_policy.hpp"

namespace troupe {

namespace {

using Self = SchedulerActor::stateful_pointer<SchedulerState>;

void dispatch(Self self, StepOrders orders) {
  SchedulerArguments& arguments = self->state.arguments;
  for (std::size_t group = 0; group < orders.groups.size(); ++group) {
    self->send(arguments.allocators[group],
               ExecuteOrders{orders.ticket, std::move(orders.groups[group]), orders.plan, self});
  }
  if (orders.plan != nullptr) {
    self->send(arguments.runner, RunStep{std::move(orders.plan), self});
  }
}

/// Sends what can be planned now, and only then the tokens, so that the runner does not wait for clients.
void advance(Self self) {
  SchedulerState& state = self->state;
  while (state.holds == 0) {
    const std::int64_t started_ns = state.arguments.trace ? steady_now_ns() : 0;
    std::optional<StepOrders> orders = state.scheduler->plan_step();
    if (!orders) {
      break;
    }
    const bool is_step = orders->plan != nullptr;
    const std::uint64_t number = is_step ? orders->plan->step : orders->ticket;
    dispatch(self, std::move(*orders));
    if (state.arguments.trace) {
      state.arguments.trace->add({is_step ? "plan" : "reclaim", number, started_ns, steady_now_ns()});
    }
  }
  if (std::vector<RequestOutput> outputs = state.scheduler->take_outputs(); !outputs.empty()) {
    self->send(state.arguments.outputs, RequestOutputs{std::move(outputs)});
  }
}

/// Answers before anything that follows from the answer is sent: a client learns its request's id before its tokens.
template <class Answer, class Value, class Convert>
caf::result<Answer> answer_then_advance(Self self, Result<Value> result, Convert convert) {
  auto promise = self->make_response_promise<Answer>();
  if (result) {
    promise.deliver(convert(result));
  } else {
    promise.deliver(to_caf_error(result.error()));
  }
  advance(self);
  return promise;
}

void settle(Self self, const StepResult& result) {
  SchedulerState& state = self->state;
  {
    const TraceScope scope(state.arguments.trace, "settle", result.step);
    state.scheduler->settle(result);
  }
  state.gaps.add_step(result, state.scheduler->has_pending());
  advance(self);
}

EngineStatistics collect_statistics(const SchedulerState& state) {
  EngineStatistics statistics;
  statistics.blocks = state.arguments.manager->counts();
  statistics.num_blocks = state.arguments.manager->num_blocks();
  statistics.block_size = state.arguments.manager->block_size();
  state.scheduler->add_statistics(statistics);
  state.gaps.add_statistics(statistics);
  return statistics;
}

caf::result<Done> hold(SchedulerState& state) {
  if (Result<void> checked = state.scheduler->check_invariants(); !checked) {
    return to_caf_error(checked.error());
  }
  ++state.holds;
  return Done{};
}

}  // namespace

void IdleGaps::add_step(const StepResult& result, bool next_wanted) {
  if (wanted_) {
    const std::int64_t gap_ns = std::max<std::int64_t>(0, result.started_ns - last_end_ns_);
    total_ns_ += gap_ns;
    max_ns_ = std::max(max_ns_, gap_ns);
    ++count_;
  }
  step_time_ns_ += result.ended_ns - result.started_ns;
  last_end_ns_ = result.ended_ns;
  wanted_ = next_wanted;
}

void IdleGaps::add_statistics(EngineStatistics& statistics) const {
  statistics.idle_gap_total_ns = total_ns_;
  statistics.idle_gap_max_ns = max_ns_;
  statistics.idle_gap_count = count_;
  statistics.step_time_total_ns = step_time_ns_;
}

SchedulerActor::behavior_type scheduler_actor(Self self, const SchedulerArguments& arguments) {
  set_quiet_handlers(self);
  Result<std::unique_ptr<SchedulingPolicy>> policy =
      make_scheduling_policy(arguments.config.scheduler, arguments.config.safety_margin);
  if (!policy) {
    self->quit(to_caf_error(policy.error()));
    return SchedulerActor::behavior_type::make_empty_behavior();
  }
  self->state.arguments = arguments;
  self->state.scheduler = std::make_unique<Scheduler>(arguments.config, arguments.model, arguments.groups,
                                                      *arguments.manager, std::move(*policy));
  return {
      [self](Request& request) {
        return answer_then_advance<RequestAccepted>(
            self, self->state.scheduler->submit(std::move(request)),
            [](Result<std::string>& id) { return RequestAccepted{std::move(*id)}; });
      },
      [self](const CancelRequest& message) {
        return answer_then_advance<Done>(self, self->state.scheduler->cancel(message.id),
                                         [](Result<void>&) { return Done{}; });
      },
      [self](const CancelAllRequests&) {
        self->state.scheduler->cancel_all();
        advance(self);
        return Done{};
      },
      [self](const ForkRequest& message) {
        return answer_then_advance<ForkAccepted>(
            self, self->state.scheduler->fork(message.id, message.num_children, message.overrides),
            [](Result<std::vector<std::string>>& ids) { return ForkAccepted{std::move(*ids)}; });
      },
      [self](const StepResult& result) { settle(self, result); },
      [self](const OrdersExecuted& message) {
        self->state.scheduler->acknowledge(message.group, message.ticket);
        advance(self);
      },
      [self](const GetStatistics&) { return collect_statistics(self->state); },
      [self](const HoldSteps&) { return hold(self->state); },
      [self](const ResumeSteps&) {
        --self->state.holds;
        advance(self);
      },
  };
}

}  // namespace troupe
