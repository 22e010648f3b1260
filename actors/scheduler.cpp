#include "actors/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

Scheduler::Scheduler(EngineConfig config, ModelDescription model, std::vector<LayerGroup> groups, BlockManager& manager,
                     std::unique_ptr<SchedulingPolicy> policy)
    : impl_(
          std::make_unique<Impl>(std::move(config), std::move(model), std::move(groups), manager, std::move(policy))) {}

Scheduler::~Scheduler() = default;

Result<std::string> Scheduler::submit(Request request) { return impl_->submit(std::move(request)); }

Result<void> Scheduler::cancel(const std::string& id) { return impl_->cancel(id); }

void Scheduler::cancel_all() { impl_->cancel_all(); }

Result<std::vector<std::string>> Scheduler::fork(const std::string& id, std::int32_t num_children,
                                                 const ForkOverrides& overrides) {
  return impl_->fork(id, num_children, overrides);
}

std::optional<StepOrders> Scheduler::plan_step() { return impl_->plan_step(); }

void Scheduler::settle(const StepResult& result) { impl_->settle(result); }

void Scheduler::acknowledge(GroupId group, std::uint64_t ticket) { impl_->acknowledge(group, ticket); }

std::vector<RequestOutput> Scheduler::take_outputs() { return std::exchange(impl_->outputs_, {}); }

bool Scheduler::has_pending() const { return !impl_->requests_.empty() || !impl_->in_flight_.empty(); }

std::int32_t Scheduler::steps_in_flight() const { return static_cast<std::int32_t>(impl_->in_flight_.size()); }

Result<void> Scheduler::check_invariants() const { return impl_->check_invariants(); }

void Scheduler::add_statistics(EngineStatistics& statistics) const {
  const EngineStatistics& own = impl_->statistics_;
  statistics.running_requests = static_cast<std::int32_t>(impl_->prefilling_.size() + impl_->decoding_.size());
  statistics.waiting_requests = static_cast<std::int32_t>(impl_->waiting_.size()) + impl_->num_forking_;
  statistics.accepted_requests = own.accepted_requests;
  statistics.refused_requests = own.refused_requests;
  statistics.finished_requests = own.finished_requests;
  statistics.cancelled_requests = own.cancelled_requests;
  statistics.failed_requests = own.failed_requests;
  statistics.preemptions = own.preemptions;
  statistics.steps = own.steps;
  statistics.forward_tokens = own.forward_tokens;
  statistics.generated_tokens = own.generated_tokens;
  statistics.cached_tokens = own.cached_tokens;
}

Scheduler::Impl::Impl(EngineConfig engine_config, ModelDescription model_description, std::vector<LayerGroup> groups,
                      BlockManager& block_manager, std::unique_ptr<SchedulingPolicy> scheduling_policy)
    : config(std::move(engine_config)),
      model(std::move(model_description)),
      layout(std::move(groups), block_manager.block_size(), config.prefix_sharing),
      limits{.context = model.max_position_embeddings,
             .cache = layout.capacity(block_manager.num_blocks(), model.max_position_embeddings)},
      manager(block_manager),
      policy(std::move(scheduling_policy)) {}

Result<std::string> Scheduler::Impl::submit(Request request) {
  Result<void> checked = check_request(request, model, limits);
  if (checked && requests_by_id_.contains(request.id)) {
    checked = fail(ErrorCode::duplicate_id, "id \"" + request.id + "\" is already in use by a request in flight");
  }
  if (checked) {
    checked = check_queue_has_room(1);
  }
  if (!checked) {
    ++statistics_.refused_requests;
    return tl::unexpected<Error>(std::move(checked.error()));
  }

  auto state = std::make_unique<RequestState>();
  state->id = request.id.empty() ? make_up_id() : std::move(request.id);
  state->sampling = request.sampling;
  state->sampling.top_k = std::max(request.sampling.top_k, 0);
  if (!request.ignore_eos) {
    state->eos_token_ids = request.eos_token_ids.value_or(model.eos_token_ids);
    std::ranges::sort(state->eos_token_ids);
  }
  state->streaming = request.streaming;
  state->prefix_sharing = request.prefix_sharing;
  state->prompt_length = static_cast<std::int32_t>(request.prompt_ids.size());
  state->max_total_length = *resolve_total_length(state->prompt_length, request.max_new_tokens, limits);
  state->tokens = std::move(request.prompt_ids);
  RequestState& added = add_request(std::move(state));
  compute_hashes(added);
  put_in(added, RequestStatus::waiting);
  return added.id;
}

Result<void> Scheduler::Impl::cancel(const std::string& id) {
  const auto found = requests_by_id_.find(id);
  if (found == requests_by_id_.end()) {
    return fail(ErrorCode::unknown_request, "no request \"" + id + "\" is in flight");
  }
  finish(*found->second, FinishReason::cancelled);
  return {};
}

void Scheduler::Impl::cancel_all() {
  std::vector<RequestId> numbers;
  numbers.reserve(requests_.size());
  for (const auto& [number, state] : requests_) {
    numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  for (const RequestId number : numbers) {
    finish(*find(number), FinishReason::cancelled);
  }
}

RequestState* Scheduler::Impl::find(RequestId number) const {
  const auto found = requests_.find(number);
  return found == requests_.end() ? nullptr : found->second.get();
}

Result<void> Scheduler::Impl::check_queue_has_room(std::int64_t num_requests) const {
  const std::int64_t waiting = static_cast<std::int64_t>(waiting_.size()) + num_forking_;
  if (waiting + num_requests > config.max_waiting_requests) {
    return fail(ErrorCode::overloaded, std::to_string(waiting) + " requests wait, " + std::to_string(num_requests) +
                                           " more would pass max_waiting_requests (" +
                                           std::to_string(config.max_waiting_requests) + ")");
  }
  return {};
}

std::string Scheduler::Impl::make_up_id() {
  std::string id;
  do {
    id = "req_" + std::to_string(next_made_up_id_++);
  } while (requests_by_id_.contains(id));
  return id;
}

RequestState& Scheduler::Impl::add_request(std::unique_ptr<RequestState> state) {
  RequestState& added = *state;
  added.number = next_number_++;
  requests_by_id_.emplace(added.id, &added);
  requests_.emplace(added.number, std::move(state));
  ++statistics_.accepted_requests;
  return added;
}

void Scheduler::Impl::deliver(RequestState& state, FinishReason reason, Error error) {
  const auto first = static_cast<std::ptrdiff_t>(state.num_delivered);
  RequestOutput output;
  output.id = state.id;
  output.token_ids.assign(state.tokens.begin() + state.prompt_length + first, state.tokens.end());
  if (state.sampling.return_logprobs) {
    output.logprobs.assign(state.logprobs.begin() + first, state.logprobs.end());
  }
  output.reason = reason;
  output.error = std::move(error);
  output.prompt_tokens = state.prompt_length;
  output.cached_tokens = state.cached_tokens;
  statistics_.generated_tokens += output.token_ids.size();
  state.num_delivered = state.num_generated();
  outputs_.push_back(std::move(output));
}

void Scheduler::Impl::finish(RequestState& state, FinishReason reason, Error error) {
  release_children(state);
  take_out(state);
  deliver(state, reason, std::move(error));
  if (state.past_length > 0) {
    releases_.push_back(state.number);
  }
  switch (reason) {
    case FinishReason::cancelled:
      ++statistics_.cancelled_requests;
      break;
    case FinishReason::failed:
      ++statistics_.failed_requests;
      break;
    default:
      ++statistics_.finished_requests;
  }
  requests_by_id_.erase(state.id);
  requests_.erase(state.number);
}

void Scheduler::Impl::take_out(RequestState& state) {
  switch (state.status) {
    case RequestStatus::forking:
      std::erase(state.parent->children, &state);
      state.parent = nullptr;
      --num_forking_;
      break;
    case RequestStatus::waiting:
      waiting_.erase(state.waiting_key());
      break;
    case RequestStatus::prefilling:
      prefilling_.erase(state.age);
      break;
    case RequestStatus::decoding:
      decoding_.erase(state.age);
      break;
  }
  if (state.is_suspect()) {
    suspects_.erase(state.age);
  }
}

void Scheduler::Impl::put_in(RequestState& state, RequestStatus status) {
  state.status = status;
  switch (status) {
    case RequestStatus::forking:
      state.parent->children.push_back(&state);
      ++num_forking_;
      break;
    case RequestStatus::waiting:
      waiting_.emplace(state.waiting_key(), &state);
      break;
    case RequestStatus::prefilling:
      prefilling_.emplace(state.age, &state);
      break;
    case RequestStatus::decoding:
      decoding_.emplace(state.age, &state);
      break;
  }
  if (state.is_suspect()) {
    suspects_.emplace(state.age, &state);
  }
}

}  // namespace troupe
