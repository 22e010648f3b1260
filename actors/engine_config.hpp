#pragma once

#include <cstdint>
#include <string>

#include "cache/error.hpp"

namespace troupe {

/// How an engine is told to end.
enum class ShutdownMode : std::uint8_t {
  /// Finish what was accepted, refuse what is new.
  drain,
  /// End everything now.
  cancel,
};

/// Settings of an engine.
struct EngineConfig {
  /// Slots (tokens) in a block.
  std::int32_t block_size = 32;
  /// 0 computes it from the memory that the process may use (cache/memory_sizing.hpp).
  std::int32_t num_blocks = 0;
  /// Query tokens of a step.
  std::int32_t max_batch_tokens = 512;
  /// Requests of a step.
  std::int32_t max_batch_requests = 1024;
  /// Requests that wait; more are refused as `overloaded`.
  std::int32_t max_waiting_requests = 100'000;
  /// "fifo" or "prefill_first".
  std::string scheduler = "fifo";
  /// Fraction of the blocks that new requests leave free while others run. Negative means the scheduler's own default.
  double safety_margin = -1.0;
  /// Steps in flight: 1 plans a step when the previous one has ended, 2 plans it while that one runs.
  std::int32_t pipeline_depth = 2;
  /// Share complete blocks between requests with equal beginnings.
  bool prefix_sharing = true;
  /// Fill unwritten slots with NaN (debugging).
  bool poison_unwritten = false;
  /// Bytes that the cache may take if `num_blocks` is 0; 0 means a fraction of the available memory.
  std::int64_t cache_bytes = 0;
  /// If not empty, event times of all actors are recorded and written here as Chrome trace JSON at shutdown.
  std::string trace_file;
  /// Threads of the actor system's pool.
  std::int32_t pool_threads = 2;
};

/// Checks every setting. Error `invalid_request` names the first one that is wrong, its limits and what was found.
[[nodiscard]] Result<void> validate(const EngineConfig& config);

}  // namespace troupe
