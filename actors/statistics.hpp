#pragma once

#include <cstdint>
#include <vector>

#include "cache/block_manager.hpp"

namespace troupe {

/// A snapshot of an engine's counters.
struct EngineStatistics {
  BlockCounts blocks;
  std::int32_t num_blocks = 0;
  std::int32_t block_size = 0;
  std::int32_t running_requests = 0;
  std::int32_t waiting_requests = 0;
  std::uint64_t accepted_requests = 0;
  std::uint64_t refused_requests = 0;
  std::uint64_t finished_requests = 0;
  std::uint64_t cancelled_requests = 0;
  std::uint64_t failed_requests = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
  /// Query tokens that went through forward passes.
  std::uint64_t forward_tokens = 0;
  /// Tokens delivered to clients.
  std::uint64_t generated_tokens = 0;
  /// Prompt tokens served from the cache.
  std::uint64_t cached_tokens = 0;
  /// Sum and maximum of the runner's idle time between consecutive steps, where the next one was wanted.
  std::int64_t idle_gap_total_ns = 0;
  std::int64_t idle_gap_max_ns = 0;
  std::uint64_t idle_gap_count = 0;
  std::int64_t step_time_total_ns = 0;
};

}  // namespace troupe
