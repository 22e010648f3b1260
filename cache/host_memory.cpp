#include "cache/host_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBytesPerKib = 1024;

/// Files of one version of control groups, and the key of droppable page cache in memory.stat.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* droppable;
};
constexpr CgroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

/// The first number after `key` in a file of "key number" lines; with an empty key, the file's first word.
std::optional<std::int64_t> read_number(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string word;
    if (!key.empty() && !(words >> word && word == key)) {
      continue;
    }
    std::int64_t number = 0;
    if (!(words >> word) || std::from_chars(word.data(), word.data() + word.size(), number).ec != std::errc()) {
      // "max", say.
      return std::nullopt;
    }
    return number;
  }
  return std::nullopt;
}

/// Lowers `memory` to what the control group at `path` below `root`, and each one that contains it, leave.
void apply_cgroup(const fs::path& root, std::string path, const CgroupFiles& files, HostMemory& memory) {
  while (true) {
    const fs::path directory = root.string() + path;
    const std::optional<std::int64_t> limit = read_number(directory / files.limit, "");
    const std::optional<std::int64_t> usage = read_number(directory / files.usage, "");
    if (limit && usage) {
      const std::int64_t droppable = read_number(directory / "memory.stat", files.droppable).value_or(0);
      const std::int64_t left = *limit - std::max<std::int64_t>(*usage - droppable, 0);
      if (left < memory.available_bytes) {
        memory = HostMemory{.available_bytes = std::max<std::int64_t>(left, 0),
                            .limited_by = (directory / files.limit).string()};
      }
    }
    if (path.empty()) {
      return;
    }
    // "/a/b" becomes "/a", then "", the root.
    const std::size_t last = path.rfind('/');
    path.resize(last == std::string::npos ? 0 : last);
  }
}

bool lists_memory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

}  // namespace

Result<HostMemory> read_host_memory(const HostMemoryPaths& paths) {
  const fs::path meminfo = paths.proc / "meminfo";
  const std::optional<std::int64_t> available_kib = read_number(meminfo, "MemAvailable:");
  if (!available_kib) {
    return fail(ErrorCode::io_error, meminfo.string() + ": expected a line \"MemAvailable: <number> kB\", found none");
  }
  HostMemory memory{.available_bytes = *available_kib * kBytesPerKib, .limited_by = meminfo.string()};

  // Lines are hierarchy:controllers:path; version 2 has the hierarchy 0 and no controllers.
  std::ifstream cgroups(paths.proc / "self" / "cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      apply_cgroup(paths.cgroup, path, kVersion2, memory);
    } else if (lists_memory(controllers)) {
      apply_cgroup(paths.cgroup / "memory", path, kVersion1, memory);
    }
  }
  return memory;
}

}  // namespace troupe
