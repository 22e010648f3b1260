#pragma once

/// All decisions of the scheduler actor, without an actor system. See docs/scheduler.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/engine_config.hpp"
#include "actors/request.hpp"
#include "actors/scheduling_policy.hpp"
#include "actors/statistics.hpp"
#include "cache/block_manager.hpp"
#include "cache/step.hpp"
#include "cache/step_executor.hpp"

namespace troupe {

/// What one cache allocator has to do, in this order: complete, release, adopt, fork, extend; then, if the orders
/// belong to a step, build the step's inputs.
struct GroupOrders {
  struct Completion {
    RequestId request = 0;
    std::int32_t num_complete_blocks = 0;
    /// Position of `tokens[0]`, a multiple of the block size.
    std::int32_t first_position = 0;
    std::vector<TokenId> tokens;
  };
  struct Adoption {
    RequestId request = 0;
    std::vector<BlockId> blocks;
  };
  struct Fork {
    RequestId parent = 0;
    std::vector<RequestId> children;
  };
  struct Extension {
    RequestId request = 0;
    std::int32_t num_blocks = 0;
  };
  std::vector<Completion> completions;
  std::vector<RequestId> releases;
  std::vector<Adoption> adoptions;
  std::vector<Fork> forks;
  /// Drawn from the scheduler's reservation, so they cannot fail.
  std::vector<Extension> extensions;
};

/// What the scheduler wants done next.
struct StepOrders {
  /// Number of these orders, from 1 upwards; allocators acknowledge it.
  std::uint64_t ticket = 0;
  /// Null if this is housekeeping only (blocks must come back before a step can be planned).
  std::shared_ptr<const StepPlan> plan;
  /// One entry for each layer group.
  std::vector<GroupOrders> groups;
};

/// Owns every request's state, the waiting queue and the policy. Single-threaded; only `BlockManager` is shared. Every
/// step is a transaction: decide, reserve, commit, (execute), settle. Counterpart of `Scheduler` of transformers.
class Scheduler {
 public:
  Scheduler(EngineConfig config, ModelDescription model, std::vector<LayerGroup> groups, BlockManager& manager,
            std::unique_ptr<SchedulingPolicy> policy);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  Scheduler(Scheduler&&) = delete;
  Scheduler& operator=(Scheduler&&) = delete;
  ~Scheduler();

  /// Checks and queues a request; returns its id. Errors: `invalid_request`, `request_too_long`, `duplicate_id`,
  /// `overloaded`, each naming field, limit and what was found. A refused request leaves nothing behind.
  [[nodiscard]] Result<std::string> submit(Request request);

  /// Ends a request with an output of reason `cancelled` that carries what it had.
  [[nodiscard]] Result<void> cancel(const std::string& id);
  void cancel_all();

  /// Makes `num_children` children of a live request that share its past as far as it is known now, and go on from
  /// there with their own parameters. Children whose blocks do not fit now wait as new requests over the shared tokens.
  /// Returns their ids, `<id>__child#<i>`, i counting up over all forks of that parent.
  [[nodiscard]] Result<std::vector<std::string>> fork(const std::string& id, std::int32_t num_children,
                                                      const ForkOverrides& overrides);

  /// Plans the next step, or housekeeping, or nothing (nullopt): the pipeline is full, nothing is runnable, or an
  /// acknowledgement or a result must come first.
  [[nodiscard]] std::optional<StepOrders> plan_step();

  /// Applies a step's result: tokens, ends, failures. Steps settle in order.
  void settle(const StepResult& result);

  /// An allocator has executed the orders of `ticket`: the blocks they release are free now.
  void acknowledge(GroupId group, std::uint64_t ticket);

  /// Outputs since the last call, in order for each request.
  [[nodiscard]] std::vector<RequestOutput> take_outputs();

  /// Whether any request is waiting or running, or a step is in flight.
  [[nodiscard]] bool has_pending() const;
  [[nodiscard]] std::int32_t steps_in_flight() const;
  /// Fills the scheduler's part of the statistics.
  void add_statistics(EngineStatistics& statistics) const;

  /// Checks the request states against each other: queues, ids, lengths, steps in flight. Pairs with the allocators'
  /// and `BlockManager::check_invariants`.
  [[nodiscard]] Result<void> check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
