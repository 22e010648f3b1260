#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages.hpp"
#include "actors/scheduler.hpp"
#include "actors/trace.hpp"
#include "cache/block_manager.hpp"

namespace troupe {

/// The runner's idle time between steps, from the times in their results.
class IdleGaps {
 public:
  /// @param next_wanted Whether there is work for a next step, so that the time until it starts is a gap.
  void add_step(const StepResult& result, bool next_wanted);

  void add_statistics(EngineStatistics& statistics) const;

 private:
  bool wanted_ = false;
  std::int64_t last_end_ns_ = 0;
  std::int64_t total_ns_ = 0;
  std::int64_t max_ns_ = 0;
  std::uint64_t count_ = 0;
  std::int64_t step_time_ns_ = 0;
};

/// What the SCHEDULER is made of.
struct SchedulerArguments {
  EngineConfig config;
  ModelDescription model;
  std::vector<LayerGroup> groups;
  std::shared_ptr<BlockManager> manager;
  /// One for each of `groups`.
  std::vector<CacheAllocatorActor> allocators;
  ModelRunnerActor runner;
  OutputSinkActor outputs;
  /// Null if nothing is recorded.
  std::shared_ptr<TraceLane> trace;
};

/// State of the SCHEDULER. All decisions are in `Scheduler`, which needs no actor system.
struct SchedulerState {
  static inline const char* name = "scheduler";
  SchedulerArguments arguments;
  std::unique_ptr<Scheduler> scheduler;
  IdleGaps gaps;
  /// `HoldSteps` that were not taken back.
  std::int32_t holds = 0;
};

/// Turns messages into calls of `Scheduler`, and its orders into messages. Ends with an error if the policy is unknown.
SchedulerActor::behavior_type scheduler_actor(SchedulerActor::stateful_pointer<SchedulerState> self,
                                              const SchedulerArguments& arguments);

}  // namespace troupe
