#include <algorithm>
#include <string>
#include <unordered_map>

#include "actors/scheduler_impl.hpp"

namespace troupe {
namespace {

Result<void> broken(const RequestState& state, const std::string& what) {
  return fail(ErrorCode::internal,
              "request \"" + state.id + "\" (" + std::to_string(state.number) + "): " + what + "; status " +
                  std::to_string(static_cast<int>(state.status)) + ", completed " +
                  std::to_string(state.completed_blocks) + " blocks, computed " +
                  std::to_string(state.computed_length) + ", past " + std::to_string(state.past_length) + ", known " +
                  std::to_string(state.known_length()) + ", promised " + std::to_string(state.promised_tokens) +
                  ", limit " + std::to_string(state.max_total_length));
}

}  // namespace

Result<void> Scheduler::Impl::check_invariants() const {
  for (const auto& [number, state] : requests_) {
    if (Result<void> checked = check_state(*state); !checked) {
      return checked;
    }
  }
  if (Result<void> checked = check_queues(); !checked) {
    return checked;
  }
  return check_rows_in_flight();
}

Result<void> Scheduler::Impl::check_state(const RequestState& state) const {
  const auto by_id = requests_by_id_.find(state.id);
  if (by_id == requests_by_id_.end() || by_id->second != &state) {
    return broken(state, "its id leads elsewhere");
  }
  const bool lengths_are_ordered = state.completed_blocks * layout.block_size() <= state.computed_length &&
                                   state.computed_length <= state.past_length &&
                                   state.past_length < state.total_length() && state.promised_tokens >= 0 &&
                                   state.total_length() <= state.max_total_length &&
                                   state.known_length() < state.max_total_length && state.prompt_length >= 1 &&
                                   state.known_length() >= state.prompt_length;
  if (!lengths_are_ordered) {
    return broken(state, "its lengths are out of order");
  }
  if (state.is_active() != (state.past_length > 0)) {
    return broken(state, "only active requests have blocks");
  }
  if (state.status == RequestStatus::decoding && state.past_length != state.total_length() - 1) {
    return broken(state, "a decoding request lacks exactly one token in the cache");
  }
  if (state.num_delivered > state.num_generated() ||
      (state.sampling.return_logprobs && state.logprobs.size() != state.num_generated())) {
    return broken(state, "delivered tokens or log-probabilities do not match what was generated");
  }
  if ((state.status == RequestStatus::forking) != (state.parent != nullptr)) {
    return broken(state, "exactly the children to come know their parent");
  }
  if (state.is_at_fork_point() && !ready_parents_.contains(state.number)) {
    return broken(state, "it can fork, but is not listed");
  }
  for (const RequestState* child : state.children) {
    if (child->parent != &state) {
      return broken(state, "its child \"" + child->id + "\" does not know it");
    }
  }
  return {};
}

Result<void> Scheduler::Impl::check_queues() const {
  std::size_t num_forking = 0;
  for (const auto& [number, state] : requests_) {
    bool is_queued = false;
    switch (state->status) {
      case RequestStatus::forking:
        is_queued = std::ranges::count(state->parent->children, state.get()) == 1;
        ++num_forking;
        break;
      case RequestStatus::waiting:
        is_queued = waiting_.contains(state->waiting_key());
        break;
      case RequestStatus::prefilling:
        is_queued = prefilling_.contains(state->age);
        break;
      case RequestStatus::decoding:
        is_queued = decoding_.contains(state->age);
        break;
    }
    if (!is_queued || state->is_suspect() != suspects_.contains(state->age)) {
      return broken(*state, "it is not in the queue of its status");
    }
  }
  const std::size_t num_queued = waiting_.size() + prefilling_.size() + decoding_.size() + num_forking;
  if (num_queued != requests_.size() || requests_by_id_.size() != requests_.size() ||
      !std::cmp_equal(num_forking, num_forking_)) {
    return fail(ErrorCode::internal, std::to_string(requests_.size()) + " requests, " + std::to_string(num_queued) +
                                         " of them in queues, " + std::to_string(requests_by_id_.size()) +
                                         " with an id, " + std::to_string(num_forking_) + " to be forked");
  }
  return {};
}

Result<void> Scheduler::Impl::check_rows_in_flight() const {
  struct Expected {
    std::int32_t rows = 0;
    std::int32_t promised = 0;
    std::int32_t past_length = 0;
  };
  std::unordered_map<RequestId, Expected> expected;
  for (const StepInFlight& step : in_flight_) {
    for (const RowInFlight& row : step.rows) {
      const RequestState* state = find(row.request);
      if (state == nullptr || step.step < state->first_valid_step) {
        continue;
      }
      Expected& of_request = expected[row.request];
      ++of_request.rows;
      of_request.promised += row.samples ? 1 : 0;
      if (row.cache_epoch == state->cache_epoch) {
        of_request.past_length = row.past_length + row.query_length;
      }
    }
    for (const auto& [number, cache_epoch] : step.forked) {
      const RequestState* state = find(number);
      if (state != nullptr && step.step >= state->first_valid_step) {
        ++expected[number].rows;
      }
    }
  }
  for (const auto& [number, state] : requests_) {
    const auto found = expected.find(number);
    const Expected of_request = found == expected.end() ? Expected{} : found->second;
    const std::int32_t past_length = of_request.past_length > 0 ? of_request.past_length : state->computed_length;
    if (state->rows_in_flight != of_request.rows || state->promised_tokens != of_request.promised ||
        state->past_length != past_length) {
      return broken(*state, "the steps in flight have " + std::to_string(of_request.rows) + " rows of it, not " +
                                std::to_string(state->rows_in_flight) + ", and lead to " + std::to_string(past_length) +
                                " cached tokens");
    }
  }
  if (std::cmp_greater(in_flight_.size(), config.pipeline_depth)) {
    return fail(ErrorCode::internal, std::to_string(in_flight_.size()) +
                                         " steps in flight, but the pipeline's depth is " +
                                         std::to_string(config.pipeline_depth));
  }
  return {};
}

}  // namespace troupe
