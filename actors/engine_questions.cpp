/// What the ENGINE is asked: whether it is ready, its counters, its invariants.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/engine_actor.hpp"

namespace troupe {

caf::result<Done> EngineState::await_ready() {
  if (serves()) {
    return Done{};
  }
  if (phase_ != Phase::starting) {
    return to_caf_error(failure_ ? *failure_ : refusal());
  }
  auto [promise, key] = owe<Done>();
  ready_promises_.push_back(key);
  return promise;
}

caf::result<EngineStatistics> EngineState::statistics() {
  if (!ledger_->children.scheduler) {
    return add_own(last_statistics_);
  }
  auto [promise, key] = owe<EngineStatistics>();
  self_->request(ledger_->children.scheduler, caf::infinite, GetStatistics{})
      .then([this, key](EngineStatistics& statistics) { ledger_->promises.keep(key, add_own(std::move(statistics))); },
            [this, key](const caf::error&) { ledger_->promises.keep(key, add_own(last_statistics_)); });
  return promise;
}

EngineStatistics EngineState::add_own(EngineStatistics statistics) const {
  statistics.refused_requests += refused_requests_;
  statistics.failed_requests += failed_requests_;
  return statistics;
}

caf::result<Done> EngineState::check_invariants() {
  if (!serves()) {
    return to_caf_error(refusal());
  }
  auto [promise, key] = owe<Done>();
  // Once planning is held, all orders that were given are in the allocators' mailboxes, before the questions below.
  self_->request(ledger_->children.scheduler, caf::infinite, HoldSteps{})
      .then([this, key](Done) { collect_tables(key); }, answer_error(key));
  return promise;
}

void EngineState::collect_tables(OpenPromises::Key key) {
  struct Collection {
    std::vector<BlockTables> groups;
    std::size_t missing = 0;
    caf::error error;
  };
  const auto& allocators = ledger_->children.allocators;
  auto collection = std::make_shared<Collection>();
  collection->groups.resize(allocators.size());
  collection->missing = allocators.size();
  const auto finish = [this, key, collection] {
    if (--collection->missing > 0) {
      return;
    }
    std::vector<std::span<const BlockId>> tables;
    for (const BlockTables& group : collection->groups) {
      for (const auto& [request, table] : group.tables) {
        tables.emplace_back(table);
      }
    }
    const Result<void> checked = manager_->check_invariants(tables);
    if (ledger_->children.scheduler) {
      self_->send(ledger_->children.scheduler, ResumeSteps{});
    }
    if (collection->error) {
      ledger_->promises.keep(key, collection->error);
    } else if (!checked) {
      ledger_->promises.keep(key, to_caf_error(checked.error()));
    } else {
      ledger_->promises.keep(key, Done{});
    }
  };
  for (std::size_t group = 0; group < allocators.size(); ++group) {
    self_->request(allocators[group], caf::infinite, GetBlockTables{})
        .then(
            [collection, group, finish](BlockTables& tables) {
              collection->groups[group] = std::move(tables);
              finish();
            },
            [collection, finish](const caf::error& error) {
              collection->error = to_caf_error(from_caf_error(error));
              finish();
            });
  }
}

}  // namespace troupe
