/// What happens when blocks are short or a step fails.

#include <algorithm>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

void Scheduler::Impl::preempt_for(const RequestState& starved) {
  const auto ends = [](const RowInFlight& row) { return row.ends; };
  const bool some_request_ends =
      std::ranges::any_of(in_flight_, [&](const StepInFlight& step) { return std::ranges::any_of(step.rows, ends); });
  if (blocks_are_coming_back() || some_request_ends) {
    return;
  }
  RequestState* victim = youngest_active();
  if (victim != nullptr && victim->age > starved.age) {
    requeue(*victim);
    ++statistics_.preemptions;
  }
}

void Scheduler::Impl::requeue(RequestState& state) {
  release_children(state);
  take_out(state);
  if (state.past_length > 0) {
    releases_.push_back(state.number);
  }
  ++state.cache_epoch;
  state.past_length = 0;
  state.computed_length = 0;
  state.completed_blocks = 0;
  if (state.rows_in_flight == 0) {
    compute_hashes(state);
  }
  put_in(state, RequestStatus::waiting);
}

void Scheduler::Impl::fail_step(const StepInFlight& step, const Error& error) {
  for (const RowInFlight& row : step.rows) {
    RequestState* state = find(row.request);
    if (state != nullptr && step.step >= state->first_valid_step) {
      retry_alone(*state, row, error);
    }
  }
  // What the copies of this step should have filled is not there, so rows after it have read nothing.
  for (const auto& [number, cache_epoch] : step.forked) {
    RequestState* state = find(number);
    if (state != nullptr && step.step >= state->first_valid_step) {
      void_rows(*state);
      requeue(*state);
    }
  }
}

void Scheduler::Impl::retry_alone(RequestState& state, const RowInFlight& row, const Error& error) {
  if (state.is_suspect()) {
    finish(state, FinishReason::failed, error);
    return;
  }
  void_rows(state);
  requeue(state);
  state.suspect_until = row.past_length + row.query_length;
  suspects_.emplace(state.age, &state);
}

void Scheduler::Impl::void_rows(RequestState& state) const {
  state.first_valid_step = next_step_;
  state.rows_in_flight = 0;
  state.promised_tokens = 0;
}

Scheduler::Impl::Draft Scheduler::Impl::draft_retry() {
  for (const auto& [age, state] : suspects_) {
    if (state->rows_in_flight > 0) {
      continue;
    }
    std::vector<BlockId> prefix;
    std::int32_t past = state->past_length;
    if (!state->is_active()) {
      prefix = std::move(acquire_prefix(*state).prefix);
      past = static_cast<std::int32_t>(prefix.size()) * layout.block_size();
    }
    const std::int32_t query_length = std::min(state->tokens_to_plan(past), config.max_batch_tokens);
    const std::int64_t needed = layout.blocks_to_grow(past, past + query_length);
    Draft draft;
    if (needed > manager.num_available_blocks()) {
      (void)manager.free_blocks(prefix);
      draft.starved = state;
      return draft;
    }
    draft.num_blocks = needed;
    draft.rows.push_back({.state = state, .query_length = query_length, .prefix = std::move(prefix)});
    return draft;
  }
  return {};
}

RequestState* Scheduler::Impl::oldest_active() const {
  RequestState* oldest = prefilling_.empty() ? nullptr : prefilling_.begin()->second;
  if (!decoding_.empty() && (oldest == nullptr || decoding_.begin()->first < oldest->age)) {
    oldest = decoding_.begin()->second;
  }
  return oldest;
}

RequestState* Scheduler::Impl::youngest_active() const {
  RequestState* youngest = prefilling_.empty() ? nullptr : prefilling_.rbegin()->second;
  if (!decoding_.empty() && (youngest == nullptr || decoding_.rbegin()->first > youngest->age)) {
    youngest = decoding_.rbegin()->second;
  }
  return youngest;
}

}  // namespace troupe
