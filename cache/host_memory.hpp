#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cache/error.hpp"

namespace troupe {

/// Where the kernel tells about memory; tests point these elsewhere.
struct HostMemoryPaths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

/// Host memory that this process can still take before the kernel swaps or kills.
struct HostMemory {
  std::int64_t available_bytes = 0;
  /// The file that sets the limit, for messages.
  std::string limited_by;
};

/// Returns the smallest of MemAvailable and what is left under the memory limit of each control group, of version 1 or
/// 2, that the process is in. Page cache that the kernel may drop counts as left. Error `io_error` without
/// MemAvailable.
[[nodiscard]] Result<HostMemory> read_host_memory(const HostMemoryPaths& paths = {});

}  // namespace troupe
