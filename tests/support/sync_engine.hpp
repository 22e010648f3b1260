#pragma once

/// The engine in one thread: scheduler, cache allocators and simulated executor, with queues where the actors have
/// mailboxes. What is delivered next is either fixed or drawn at random, so that every interleaving of
/// acknowledgements, orders and results can be tried and replayed.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "actors/scheduler.hpp"
#include "actors/simulated_executor.hpp"
#include "cache/block_manager.hpp"
#include "cache/cache_allocator.hpp"

namespace troupe::test {

struct SyncEngineOptions {
  EngineConfig config;
  ModelDescription model;
  std::vector<LayerGroup> groups;
  BlockManagerOptions manager;
  SimulatedExecutorOptions executor;
  /// If set, what happens next is drawn with this seed; else everything happens as soon as it can.
  std::optional<std::uint64_t> seed;
  /// Replaces the policy that `config.scheduler` names.
  std::function<std::unique_ptr<SchedulingPolicy>()> policy;
};

/// One full group, `num_blocks` blocks, a vocabulary of 512, a context of 1024.
[[nodiscard]] SyncEngineOptions default_options(std::int32_t num_blocks, std::int32_t block_size);

/// What a request has got so far.
struct Collected {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  FinishReason reason = FinishReason::none;
  Error error;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t num_outputs = 0;
};

/// Throws std::logic_error at the first broken invariant, which a test reports as its failure.
class SyncEngine {
 public:
  explicit SyncEngine(SyncEngineOptions options);

  [[nodiscard]] Result<std::string> submit(Request request);
  /// Submits what must be accepted; returns the id.
  std::string accept(Request request);
  [[nodiscard]] Result<void> cancel(const std::string& id);
  void cancel_all();
  [[nodiscard]] Result<std::vector<std::string>> fork(const std::string& id, std::int32_t num_children,
                                                      const ForkOverrides& overrides = {});

  /// Lets one thing happen: a plan, the execution of orders in one group, a step, the delivery of a result or of an
  /// acknowledgement. False if nothing is left to do.
  bool advance();
  /// Until nothing is left to do; then no block may be in use. Throws if it takes too many actions.
  void run();
  /// Until `condition`. Throws if it does not come about.
  void run_until(const std::function<bool()>& condition);
  /// Until `num_steps` more steps have settled.
  void run_steps(std::int32_t num_steps);

  /// Throws unless every block is free, nothing is reserved and nobody waits or runs.
  void check_idle();
  /// Throws if an invariant is broken, of the scheduler, the block manager, or between them.
  void check_invariants();

  [[nodiscard]] const Collected& result(const std::string& id) const { return results_.at(id); }
  [[nodiscard]] bool has_result(const std::string& id) const { return results_.contains(id); }
  [[nodiscard]] const std::map<std::string, Collected>& results() const { return results_; }
  /// Forgets the results of requests that have ended.
  void clear_results();
  [[nodiscard]] EngineStatistics statistics() const;
  /// The plan of every step so far, in order.
  [[nodiscard]] const std::vector<std::shared_ptr<const StepPlan>>& plans() const { return plans_; }
  [[nodiscard]] BlockManager& manager() { return manager_; }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] const CacheAllocator& allocator(std::size_t group) const { return *allocators_[group]; }
  /// Orders without a step so far.
  [[nodiscard]] std::int32_t num_housekeepings() const { return num_housekeepings_; }
  /// Whether what steps leave behind is kept (`plans`).
  bool keeps_plans = true;

 private:
  struct Orders {
    std::uint64_t ticket = 0;
    GroupOrders orders;
    std::shared_ptr<const StepPlan> plan;
  };
  struct Step {
    std::shared_ptr<const StepPlan> plan;
    std::vector<std::optional<GroupInputs>> inputs;
  };
  struct Acknowledgement {
    GroupId group = 0;
    std::uint64_t ticket = 0;
  };

  bool plan();
  bool execute_orders(std::size_t group);
  bool execute_step();
  bool deliver_result();
  bool deliver_acknowledgement();
  void collect_outputs();
  [[nodiscard]] std::int64_t blocks_promised() const;

  SyncEngineOptions options_;
  BlockManager manager_;
  std::vector<std::unique_ptr<CacheAllocator>> allocators_;
  SimulatedExecutor executor_;
  std::unique_ptr<Scheduler> scheduler_;
  std::optional<std::mt19937_64> random_;

  std::vector<std::deque<Orders>> orders_;
  std::deque<Step> steps_;
  std::deque<StepResult> step_results_;
  std::deque<Acknowledgement> acknowledgements_;
  std::map<std::string, Collected> results_;
  std::vector<std::shared_ptr<const StepPlan>> plans_;
  std::int32_t num_housekeepings_ = 0;
  std::uint64_t num_settled_ = 0;
};

/// What the request must generate, ends included.
/// @param longest Longest total length that the engine allows, for requests without `max_new_tokens`.
[[nodiscard]] std::vector<TokenId> expected_tokens(const Request& request, const ModelDescription& model,
                                                   std::int32_t longest);

}  // namespace troupe::test
