#pragma once

#include "actors/scheduling_policy.hpp"

namespace troupe {

/// Finishes started prompts before it lets others decode, then admits waiting requests in order. Counterpart of
/// `PrefillFirstScheduler` of transformers.
class PrefillFirstPolicy final : public SchedulingPolicy {
 public:
  static constexpr double kDefaultSafetyMargin = 0.0;

  explicit PrefillFirstPolicy(double safety_margin = kDefaultSafetyMargin) : safety_margin_(safety_margin) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "prefill_first"; }
  [[nodiscard]] std::vector<Choice> decide(const SchedulerSnapshot& snapshot) const override;

 private:
  double safety_margin_;
};

}  // namespace troupe
