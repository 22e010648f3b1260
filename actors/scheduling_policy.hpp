#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// What a policy sees of a request.
struct Candidate {
  RequestId request = 0;
  /// Known or promised tokens that are not in the cache yet: the rest of the prompt, or 1 for a decoding request.
  std::int32_t remaining_tokens = 0;
  /// Tokens in the cache, or about to be by a step in flight.
  std::int32_t past_length = 0;
  /// Whether the request's prompt is done.
  bool decoding = false;
  /// Blocks, in all groups, that all of the remaining tokens need on top of what the request has.
  std::int64_t new_blocks = 0;
};

/// Everything that a policy may base a decision on. Requests that cannot be in the next step (the last token is in
/// flight, a fork is pending) are left out, and so are those behind the first `max_batch_requests` of their kind.
struct SchedulerSnapshot {
  /// In order of activation.
  std::vector<Candidate> active;
  /// In order of arrival, preempted requests first; only those that may find room beside the active ones. A cached
  /// prefix is already theirs: it counts as past, and its blocks are not available.
  std::vector<Candidate> waiting;
  std::int32_t num_blocks = 0;
  std::int32_t block_size = 0;
  std::int32_t available_blocks = 0;
  std::int32_t max_batch_tokens = 0;
  std::int32_t max_batch_requests = 0;
};

/// One request of a decision.
struct Choice {
  RequestId request = 0;
  /// At least 1, at most the candidate's `remaining_tokens`.
  std::int32_t query_length = 0;
};

/// Decides which requests a step serves, in order of importance: the scheduler reserves blocks in this order and drops
/// what does not fit. Pure: same snapshot, same decision, nothing is changed.
class SchedulingPolicy {
 public:
  SchedulingPolicy() = default;
  SchedulingPolicy(const SchedulingPolicy&) = delete;
  SchedulingPolicy& operator=(const SchedulingPolicy&) = delete;
  SchedulingPolicy(SchedulingPolicy&&) = delete;
  SchedulingPolicy& operator=(SchedulingPolicy&&) = delete;
  virtual ~SchedulingPolicy() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual std::vector<Choice> decide(const SchedulerSnapshot& snapshot) const = 0;
};

/// Returns the policy called `name` ("fifo", "prefill_first") or an error that lists the names.
/// @param safety_margin Fraction of the blocks that waiting requests must leave free while others run, below 1;
/// negative means
///   the policy's own default (0.2 for fifo, 0 for prefill_first).
[[nodiscard]] Result<std::unique_ptr<SchedulingPolicy>> make_scheduling_policy(std::string_view name,
                                                                               double safety_margin);

}  // namespace troupe
