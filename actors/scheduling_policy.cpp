#include "actors/scheduling_policy.hpp"

#include <string>

#include "actors/batch_selection.hpp"
#include "actors/fifo_policy.hpp"
#include "actors/prefill_first_policy.hpp"

namespace troupe {

std::vector<Choice> FifoPolicy::decide(const SchedulerSnapshot& snapshot) const {
  BatchSelection batch(snapshot, safety_margin_);
  batch.add_decoding();
  batch.add_prefilling();
  batch.add_waiting();
  return batch.take_choices();
}

std::vector<Choice> PrefillFirstPolicy::decide(const SchedulerSnapshot& snapshot) const {
  BatchSelection batch(snapshot, safety_margin_);
  batch.add_prefilling();
  batch.add_decoding();
  batch.add_waiting();
  return batch.take_choices();
}

Result<std::unique_ptr<SchedulingPolicy>> make_scheduling_policy(std::string_view name, double safety_margin) {
  // Also false for NaN.
  if (!(safety_margin < 1.0)) {
    return fail(ErrorCode::invalid_request,
                "safety_margin must be below 1 (negative for the scheduler's default), but is " +
                    std::to_string(safety_margin));
  }
  const auto margin_or = [safety_margin](double fallback) { return safety_margin < 0 ? fallback : safety_margin; };
  if (name == "fifo") {
    return std::make_unique<FifoPolicy>(margin_or(FifoPolicy::kDefaultSafetyMargin));
  }
  if (name == "prefill_first") {
    return std::make_unique<PrefillFirstPolicy>(margin_or(PrefillFirstPolicy::kDefaultSafetyMargin));
  }
  return fail(ErrorCode::invalid_request,
              R"(scheduler must be "fifo" or "prefill_first", but is ")" + std::string(name) + "\"");
}

}  // namespace troupe
