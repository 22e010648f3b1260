#pragma once

#include <cstdint>
#include <vector>

#include "actors/scheduling_policy.hpp"

namespace troupe {

/// What the policies have in common: fills a step within its budgets, in the order in which they name kinds of
/// requests.
class BatchSelection {
 public:
  /// @param safety_margin Fraction of the blocks that admissions leave free while others run.
  BatchSelection(const SchedulerSnapshot& snapshot, double safety_margin);

  /// Adds the active requests whose prompt is done, one token each.
  void add_decoding();
  /// Adds the active requests with the rest of their prompts, the last one cut to what is left of the token budget.
  void add_prefilling();
  /// Admits waiting requests strictly in order, up to the first whose tokens do not all find blocks. If nothing else
  /// runs, the first one is admitted in any case: it can have the whole cache.
  void add_waiting();

  [[nodiscard]] std::vector<Choice> take_choices() { return std::move(choices_); }

 private:
  void add_active(bool decoding);
  [[nodiscard]] bool is_full() const;
  void choose(const Candidate& candidate);

  const SchedulerSnapshot& snapshot_;
  double blocks_left_free_ = 0;
  std::int64_t available_blocks_ = 0;
  std::int32_t tokens_left_ = 0;
  std::vector<Choice> choices_;
};

}  // namespace troupe
