#pragma once

/// An executor without a model. Its keys and values are the tokens themselves, so that any fault in allocation,
/// forking, sharing, rings, preemption or pipelining becomes a wrong token or a failed check, in microseconds.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/step.hpp"
#include "cache/step_executor.hpp"

namespace troupe {

/// What goes wrong with a step.
struct SimulatedFault {
  enum class Kind : std::uint8_t {
    /// Nothing is executed; the result has an error.
    fail,
    /// Like `fail`, but after the cache was written.
    fail_late,
    /// `execute` throws std::bad_alloc, which an executor must not do.
    throw_exception,
    /// The result lacks the last row's token.
    too_few_tokens,
    /// The logits of row `row` are NaN: a row error.
    nan_row,
    /// The result comes `delay_ns` later.
    delay,
  };
  Kind kind = Kind::fail;
  std::int32_t row = 0;
  std::int64_t delay_ns = 0;
};

struct SimulatedExecutorOptions {
  /// Tokens are sampled from [0, vocab_size).
  std::int32_t vocab_size = 512;
  /// How long a step takes.
  std::int64_t step_ns = 0;
  /// How much longer each query token makes it.
  std::int64_t token_ns = 0;
  /// Whether that time really passes (the thread sleeps), or only the times in the results say so.
  bool real_time = false;
  /// Whether every visible slot is read back. Off, a step costs no more than its query tokens.
  bool verify = true;
  /// Asked before each step.
  std::function<std::optional<SimulatedFault>(const StepPlan&)> fault;
};

/// Executes steps as docs/scheduler.md describes. A slot holds its position and a hash of the whole sequence up to it,
/// as real keys and values depend on all of it. Before a row's query tokens are written, every slot that they may see
/// (the window of a sliding group) is read and must continue the one before it, at the right position; all groups must
/// agree. A row that sees anything else gets a row error of code `internal`.
class SimulatedExecutor final : public StepExecutor {
 public:
  explicit SimulatedExecutor(SimulatedExecutorOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Result<void> allocate_cache(const CacheShape& shape) override;
  [[nodiscard]] StepResult execute(const StepPlan& plan, std::span<const GroupInputs> groups) override;

 private:
  struct Slot {
    std::int32_t position = -1;
    /// Hash of the sequence up to and without, and with, the slot's own token.
    std::uint64_t parent = 0;
    std::uint64_t chain = 0;
  };
  /// A row's part of one group's inputs.
  struct RowView {
    GroupId group = 0;
    std::span<const BlockId> table;
    std::span<const std::int32_t> slots;
  };

  [[nodiscard]] Result<void> check_shape(const StepPlan& plan, std::span<const GroupInputs> groups) const;
  [[nodiscard]] Result<void> copy_blocks(const GroupInputs& inputs);
  /// Resolves a row's query tokens; an error if they come from a row that has none.
  [[nodiscard]] Result<std::vector<TokenId>> resolve_tokens(const StepPlan& plan, const StepRow& row) const;
  /// Runs one row in all groups; returns the hash of its sequence.
  [[nodiscard]] Result<std::uint64_t> run_row(const StepPlan& plan, const StepRow& row, std::size_t index,
                                              std::span<const GroupInputs> groups);
  /// Reads the past that the row sees in one group; returns the hash of the sequence up to there.
  [[nodiscard]] Result<std::uint64_t> read_past(const RowView& view, std::int32_t past_length) const;
  /// @param chains Hashes of the sequence before each query token, and after the last one.
  [[nodiscard]] Result<void> write(const RowView& view, const StepRow& row, std::span<const std::uint64_t> chains);
  /// The slot of a position, by the group's block table; an error if the table does not reach that far.
  [[nodiscard]] Result<std::int32_t> slot_of(const RowView& view, std::int32_t position) const;
  [[nodiscard]] Slot& slot_at(GroupId group, std::int32_t slot);
  [[nodiscard]] const Slot& slot_at(GroupId group, std::int32_t slot) const;
  void run_rows(const StepPlan& plan, std::span<const GroupInputs> groups, StepResult& result);
  void spend_time(const StepPlan& plan, std::int64_t delay_ns, StepResult& result);

  SimulatedExecutorOptions options_;
  CacheShape shape_;
  /// By group, then slot.
  std::vector<std::vector<Slot>> slots_;
  /// The last results, for rows whose input they are.
  std::deque<std::pair<StepId, std::vector<TokenId>>> sampled_;
  std::int64_t now_ns_ = 0;
};

/// Returns the tokens that a `SimulatedExecutor` samples after `prompt`, whatever the engine around it does. A pure
/// function: what an end-to-end test compares with. Greedy requests depend on the seed too.
[[nodiscard]] std::vector<TokenId> simulated_generate(std::span<const TokenId> prompt, const SamplingParams& sampling,
                                                      std::int32_t num_tokens, std::int32_t vocab_size);

/// The log-probability that a simulated token has at a position.
[[nodiscard]] float simulated_logprob(TokenId token, std::int32_t position);

}  // namespace troupe
