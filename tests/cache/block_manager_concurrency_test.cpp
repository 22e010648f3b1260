/// Many threads on one block manager, as the cache allocators and the scheduler are. Runs under ThreadSanitizer.

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace troupe::test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 3000;

/// Plays one cache allocator and its part of the scheduler: reserves, searches, allocates, forks, completes and frees.
/// Returns what failed, or "".
std::string play(BlockManager& manager, std::uint64_t seed, std::vector<std::vector<BlockId>>& held) {
  std::mt19937_64 random(seed);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < kRounds; ++round) {
    // Few different beginnings, so that threads find and complete the same blocks.
    const std::vector<TokenId> tokens = tokens_from_to(below(4), below(4) + 4 + below(24));
    std::vector<BlockId> table = find_prefix(manager, tokens);
    const auto num_found = static_cast<std::int32_t>(table.size());
    const auto wanted = static_cast<std::int32_t>((tokens.size() + 3) / 4) - num_found;
    if (!manager.reserve(wanted)) {
      if (const Result<void> freed = manager.free_blocks(table); !freed) {
        return freed.error().message;
      }
      continue;
    }
    if (below(8) == 0) {
      manager.cancel_reservation(wanted);
      if (const Result<void> freed = manager.free_blocks(table); !freed) {
        return freed.error().message;
      }
      continue;
    }
    const auto last = table.empty() ? std::nullopt : std::optional(table.back());
    const auto taken = manager.get_free_blocks(wanted, last, true, 0, Claim::reserved);
    if (!taken) {
      return "a reservation was not kept";
    }
    table.insert(table.end(), taken->begin(), taken->end());
    if (const Result<void> marked = manager.mark_shareable_blocks_as_complete(
            static_cast<std::int32_t>(tokens.size() / 4) - num_found, table, tokens, 0);
        !marked) {
      return marked.error().message;
    }
    if (below(3) == 0) {
      if (Result<BlockFork> fork = manager.fork_blocks(table, 1, true, 0); fork) {
        held.push_back(std::move(fork->children.front()));
      }
    }
    held.push_back(std::move(table));
    while (held.size() > 6) {
      const auto index = static_cast<std::size_t>(below(static_cast<int>(held.size())));
      if (const Result<void> freed = manager.free_blocks(held[index]); !freed) {
        return freed.error().message;
      }
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  return "";
}

TEST_CASE("threads that allocate share fork and free keep every invariant") {
  const std::uint64_t seed = test_seed();
  INFO("TROUPE_SEED=" << seed);
  BlockManager manager({.num_blocks = 160, .block_size = 4});
  std::vector<std::vector<std::vector<BlockId>>> held(kThreads);
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  std::atomic<bool> done = false;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto index = static_cast<std::size_t>(thread);
      errors[index] = play(manager, seed + index, held[index]);
    });
  }
  // Somebody who asks for statistics meanwhile.
  std::thread observer([&] {
    while (!done) {
      const BlockCounts counts = manager.counts();
      if (counts.in_use + counts.initialized + counts.uninitialized != 160) {
        errors[0] = "the counts do not add up";
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  observer.join();
  for (const std::string& error : errors) {
    CHECK(error == "");
  }
  std::vector<std::span<const BlockId>> tables;
  for (const auto& of_thread : held) {
    tables.insert(tables.end(), of_thread.begin(), of_thread.end());
  }
  CHECK(error_of(manager.check_invariants(tables)) == "");
  for (const auto& of_thread : held) {
    for (const auto& table : of_thread) {
      CHECK(error_of(manager.free_blocks(table)) == "");
    }
  }
  CHECK(manager.counts().in_use == 0);
  CHECK(manager.counts().reserved == 0);
}

}  // namespace
}  // namespace troupe::test
