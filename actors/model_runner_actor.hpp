#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages.hpp"
#include "actors/trace.hpp"
#include "cache/step_executor.hpp"

namespace troupe {

/// Joins plans with the inputs of their groups. Steps come out in order, each once it is complete.
class StepQueue {
 public:
  struct Step {
    std::shared_ptr<const StepPlan> plan;
    SchedulerActor scheduler;
    std::vector<GroupInputs> inputs;
  };

  explicit StepQueue(std::size_t num_groups = 0) : num_groups_(num_groups) {}

  /// Error `internal` if the step has a plan already.
  [[nodiscard]] Result<void> add(RunStep step);
  /// Error `internal` if there is no such group, or the step has its inputs already.
  [[nodiscard]] Result<void> add(GroupInputs inputs);

  /// Takes the oldest step if it is complete.
  [[nodiscard]] std::optional<Step> take();

 private:
  struct Entry {
    std::shared_ptr<const StepPlan> plan;
    SchedulerActor scheduler;
    std::vector<std::optional<GroupInputs>> inputs;
    std::size_t num_inputs = 0;
  };

  [[nodiscard]] Entry& entry(StepId step);

  std::size_t num_groups_;
  std::map<StepId, Entry> entries_;
};

/// State of the MODEL RUNNER. CAF destroys it on the runner's own thread, so the executor lives and dies there.
struct ModelRunnerState {
  static inline const char* name = "model runner";
  std::unique_ptr<StepExecutor> executor;
  StepQueue queue;
  /// Null if nothing is recorded.
  std::shared_ptr<TraceLane> trace;
};

/// Runs steps, one after the other. To be spawned detached, except in tests.
ModelRunnerActor::behavior_type model_runner_actor(ModelRunnerActor::stateful_pointer<ModelRunnerState> self,
                                                   std::shared_ptr<TraceLane> trace);

}  // namespace troupe
