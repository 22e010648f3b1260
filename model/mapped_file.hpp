#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "cache/error.hpp"

namespace troupe {

/// A regular file in memory, read-only, for as long as this lives. Symbolic links are followed.
/// Whoever shortens the file meanwhile crashes its readers: that is the nature of memory maps.
class MappedFile {
 public:
  /// Errors `io_error` naming the path: missing, no permission, not a regular file (which is never waited for).
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept;

  /// Lets the kernel take back the memory of a part of the file; reading it again brings it back. For what is read
  /// once.
  static void release(std::span<const std::byte> part) noexcept;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace troupe
