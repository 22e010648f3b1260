/// How a waiting request becomes active.

#include <algorithm>
#include <span>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

Scheduler::Impl::Admission Scheduler::Impl::acquire_prefix(RequestState& state) {
  Admission admission{.state = &state, .prefix = manager.acquire_prefix(state.hashes, state.tokens, 0)};
  const auto cached = static_cast<std::int32_t>(admission.prefix.size()) * layout.block_size();
  if (state.tokens_to_plan(cached) == 0) {
    // Nothing is left to compute before the fork; the children find the same prefix themselves.
    release_children(state);
  }
  return admission;
}

std::vector<Scheduler::Impl::Admission> Scheduler::Impl::gather_admissions(const std::vector<Candidate>& active) {
  std::vector<Admission> admissions;
  std::int64_t promised_blocks = 0;
  for (const Candidate& candidate : active) {
    promised_blocks += candidate.new_blocks;
  }
  const auto spare_blocks = [&] { return manager.num_available_blocks() - promised_blocks; };
  spare_blocks_ = spare_blocks();
  if (!suspects_.empty() || (!active.empty() && spare_blocks_ <= 0)) {
    return admissions;
  }
  std::int64_t tokens_left = std::int64_t{config.max_batch_tokens} - std::ssize(active);
  std::int64_t requests_left = std::int64_t{config.max_batch_requests} - std::ssize(active);
  for (const auto& [key, state] : waiting_) {
    // A preempted request waits for the tokens that its last rows sample.
    if (tokens_left <= 0 || requests_left <= 0 || state->rows_in_flight > 0) {
      break;
    }
    const bool is_blocked = state->number == blocked_request_ && spare_blocks_ <= blocked_at_spare_;
    if (is_blocked && !active.empty()) {
      break;
    }
    Admission admission = acquire_prefix(*state);
    const auto cached = static_cast<std::int32_t>(admission.prefix.size()) * layout.block_size();
    const std::int32_t remaining = state->tokens_to_plan(cached);
    const std::int64_t needed = layout.blocks_to_grow(cached, cached + remaining);
    if (needed > spare_blocks() && !(active.empty() && admissions.empty())) {
      (void)manager.free_blocks(admission.prefix);
      note_blocked(*state);
      break;
    }
    promised_blocks += needed;
    tokens_left -= remaining;
    --requests_left;
    admissions.push_back(std::move(admission));
  }
  return admissions;
}

void Scheduler::Impl::note_blocked(const RequestState& state) {
  blocked_request_ = state.number;
  blocked_at_spare_ = spare_blocks_;
}

void Scheduler::Impl::release_prefixes(std::vector<Admission>& admissions) {
  for (const Admission& admission : admissions) {
    if (admission.state != nullptr) {
      (void)manager.free_blocks(admission.prefix);
    }
  }
}

bool Scheduler::Impl::should_await_prefixes() const {
  return layout.can_share_prefixes() && in_flight_.empty() && prefilling_.empty() && decoding_.empty() &&
         blocks_are_coming_back();
}

void Scheduler::Impl::compute_hashes(RequestState& state) const {
  state.hashes.clear();
  if (layout.can_share_prefixes() && state.prefix_sharing) {
    state.hashes = manager.compute_hashes(std::span(state.tokens).first(state.tokens.size() - 1), 0);
  }
}

void Scheduler::Impl::activate(DraftRow& row, StepOrders& orders) {
  RequestState& state = *row.state;
  take_out(state);
  const auto num_cached_blocks = static_cast<std::int32_t>(row.prefix.size());
  if (num_cached_blocks > 0) {
    orders.groups.front().adoptions.push_back({.request = state.number, .blocks = std::move(row.prefix)});
  }
  state.past_length = num_cached_blocks * layout.block_size();
  state.computed_length = state.past_length;
  state.completed_blocks = num_cached_blocks;
  if (state.age == 0) {
    state.age = next_age_++;
    state.cached_tokens = state.past_length;
    statistics_.cached_tokens += static_cast<std::uint64_t>(state.cached_tokens);
  }
  put_in(state, RequestStatus::prefilling);
}

}  // namespace troupe
