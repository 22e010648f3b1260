#pragma once

#include "actors/scheduling_policy.hpp"

namespace troupe {

/// Serves running requests before it admits new ones: decoding ones first, then the rest of started prompts, then
/// waiting requests in order. Counterpart of `FIFOScheduler` of transformers.
class FifoPolicy final : public SchedulingPolicy {
 public:
  /// Leaves decoding requests room to grow, so that few are preempted.
  static constexpr double kDefaultSafetyMargin = 0.2;

  explicit FifoPolicy(double safety_margin = kDefaultSafetyMargin) : safety_margin_(safety_margin) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "fifo"; }
  [[nodiscard]] std::vector<Choice> decide(const SchedulerSnapshot& snapshot) const override;

 private:
  double safety_margin_;
};

}  // namespace troupe
