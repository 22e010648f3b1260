#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/error.hpp"

namespace troupe {

/// Reads numbers and strings of a GGUF file one after another. Reading beyond the end gives zeros and notes the
/// problem, so that a reader checks once for many values; loops over counts check each time.
class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return !error_; }
  [[nodiscard]] const Error& error() const { return *error_; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  T number() {
    T value{};
    const std::span<const std::byte> bytes = take(sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }

  /// A length of 64 bits, then as many bytes.
  std::string_view string() {
    const std::span<const std::byte> bytes = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT(*-reinterpret-cast)
  }

  /// The next `count` bytes; none, and a problem, if there are not as many.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > remaining()) {
      refuse(ErrorCode::malformed_file, "expected " + std::to_string(count) + " bytes at byte " +
                                            std::to_string(position_) + ", found " + std::to_string(remaining()) +
                                            " before the end of the file");
    }
    if (!ok()) {
      return {};
    }
    const auto part = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += part.size();
    return part;
  }

  /// Notes a problem, if there was none before.
  void refuse(ErrorCode code, std::string message) {
    if (!error_) {
      error_ = Error{.code = code, .message = std::move(message)};
    }
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  std::optional<Error> error_;
};

}  // namespace troupe
