#pragma once

#include <utility>
#include <vector>

#include "actors/scheduler.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {

/// A scheduler without anything around it, for tests that look at its orders.
struct BareScheduler {
  BlockManager manager;
  Scheduler scheduler;

  explicit BareScheduler(const SyncEngineOptions& options)
      : manager([&] {
          BlockManagerOptions manager_options;
          manager_options.num_blocks = options.config.num_blocks;
          manager_options.block_size = options.config.block_size;
          return manager_options;
        }()),
        scheduler(options.config, options.model, options.groups, manager,
                  make_scheduling_policy(options.config.scheduler, options.config.safety_margin).value()) {}

  void settle(StepId step, std::vector<TokenId> tokens) {
    StepResult result;
    result.step = step;
    result.token_ids = std::move(tokens);
    scheduler.settle(result);
  }
};

}  // namespace troupe::test
