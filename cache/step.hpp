#pragma once

/// What travels to an executor for one step, and what comes back. Plain data without LibTorch and CAF, so that the
/// scheduler, the cache allocators and both executors (LibTorch and simulated) agree on it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// How a request's next token is chosen from its logits.
struct SamplingParams {
  /// 0 is greedy. Otherwise logits are divided by it.
  float temperature = 0.0F;
  /// Keep the k most likely tokens; 0 keeps all.
  std::int32_t top_k = 0;
  /// Keep the smallest set of most likely tokens whose probability reaches this; 1 keeps all.
  float top_p = 1.0F;
  /// Drop tokens less likely than this fraction of the most likely one; 0 keeps all.
  float min_p = 0.0F;
  /// Key of the counter-based generator; with the token's position it alone decides the random number.
  std::uint64_t seed = 0;
  /// Return the log-probability of each sampled token.
  bool return_logprobs = false;

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

/// One request's part of a step: `query_length` consecutive positions from `past_length` on.
struct StepRow {
  RequestId request = 0;
  /// Tokens whose keys and values are in the cache before this step.
  std::int32_t past_length = 0;
  /// Query tokens of this step, at least 1.
  std::int32_t query_length = 0;
  /// Index of the row's first query token in `StepPlan::token_ids`.
  std::int32_t query_start = 0;
  /// If >= 0, the row's only query token is what row `input_row` of step `input_step` samples; the entry in
  /// `StepPlan::token_ids` is then -1. The executor resolves it without a round trip to the scheduler.
  std::int32_t input_row = -1;
  /// The step that `input_row` belongs to; always an earlier one.
  StepId input_step = 0;
  /// Whether the row's last query token yields a new token (false for prefill chunks before the last).
  bool samples = false;
  /// Only read if `samples`.
  SamplingParams sampling;
};

/// What the scheduler decided for one step. Immutable once sent.
struct StepPlan {
  StepId step = 0;
  std::vector<StepRow> rows;
  /// Query tokens of all rows, packed row after row; -1 where `StepRow::input_row` names the source.
  std::vector<TokenId> token_ids;
};

/// What the cache allocator of one group adds to a step.
struct GroupInputs {
  StepId step = 0;
  GroupId group = 0;
  /// Blocks of all rows, packed row after row, as they are after this step's allocation.
  std::vector<BlockId> block_table;
  /// rows + 1 offsets into `block_table`.
  std::vector<std::int32_t> block_table_offsets;
  /// For each query token of the step the slot (block * block_size + offset) that its key and value are written to, or
  /// -1 for a token of a sliding group that does not survive the step (its place in the ring is overwritten by a later
  /// token of the same step).
  std::vector<std::int32_t> slot_mapping;
  /// Whole-block copies (forks) to execute, in order, before anything else of this step.
  std::vector<BlockCopy> copies;
};

/// What a step sampled.
struct StepResult {
  StepId step = 0;
  /// One entry for each row of the plan; -1 where the row does not sample.
  std::vector<TokenId> token_ids;
  /// One entry for each row that asked for log-probabilities, else 0. Empty if none asked.
  std::vector<float> logprobs;
  /// Not empty for a row whose sampling failed (NaN logits, say): that request fails, the others go on.
  std::vector<std::pair<std::int32_t, Error>> row_errors;
  /// Set if the whole step failed; the token ids are then meaningless.
  Error error;
  /// Start and end of the execution in nanoseconds of std::chrono::steady_clock.
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;
};

}  // namespace troupe
