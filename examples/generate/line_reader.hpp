#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cache/error.hpp"

namespace troupe::generate {

/// Cuts what a file descriptor delivers into lines, never waiting for more than there is.
class LineReader {
 public:
  /// Longer lines are cut here, so that a file without line ends cannot fill the memory.
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20U;

  /// @param fd Stays the caller's.
  explicit LineReader(int fd) : fd_(fd) {}

  struct Line {
    std::string text;
    bool too_long = false;
  };

  /// Reads once; blocks if nothing is there. Error: `io_error`.
  [[nodiscard]] Result<void> fill();
  /// The next whole line of what was read, without its line end (LF or CR LF); after the end of the file the rest.
  [[nodiscard]] std::optional<Line> next();
  /// Whether the file has ended and every line was taken.
  [[nodiscard]] bool at_end() const { return at_end_ && buffer_.empty(); }

 private:
  int fd_;
  std::string buffer_;
  std::size_t searched_ = 0;
  bool at_end_ = false;
  /// Whether the rest of a line that was too long is being skipped.
  bool skipping_ = false;
};

}  // namespace troupe::generate
