#include "examples/generate/line_reader.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace troupe::generate {

Result<void> LineReader::fill() {
  std::array<char, 1U << 16U> chunk{};
  ssize_t count = 0;
  do {
    count = ::read(fd_, chunk.data(), chunk.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return fail(ErrorCode::io_error, std::string("cannot read the prompts: ") + std::strerror(errno));
  }
  at_end_ = count == 0;
  buffer_.append(chunk.data(), static_cast<std::size_t>(count));
  return {};
}

std::optional<LineReader::Line> LineReader::next() {
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      Line line{.text = buffer_.substr(0, end)};
      buffer_.erase(0, end + 1);
      searched_ = 0;
      if (std::exchange(skipping_, false)) {
        continue;
      }
      if (!line.text.empty() && line.text.back() == '\r') {
        line.text.pop_back();
      }
      return line;
    }
    searched_ = buffer_.size();
    if (skipping_) {
      buffer_.clear();
      searched_ = 0;
      return std::nullopt;
    }
    if (buffer_.size() > kMaxLineBytes) {
      buffer_.clear();
      searched_ = 0;
      skipping_ = !at_end_;
      return Line{.text = "", .too_long = true};
    }
    if (at_end_ && !buffer_.empty()) {
      searched_ = 0;
      return Line{.text = std::exchange(buffer_, {})};
    }
    return std::nullopt;
  }
}

}  // namespace troupe::generate
