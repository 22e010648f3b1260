#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/error.hpp"
#include "model/gguf_file.hpp"

namespace troupe {

/// Typed access to the metadata of a GGUF file. Reading what is not of the expected type gives a neutral value and
/// notes the problem, so that a reader of many fields checks once, at its end.
class GgufMetadata {
 public:
  /// `file` outlives this.
  explicit GgufMetadata(const GgufFile& file) : file_(&file) {}

  /// The first problem: the key, expected and found.
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }
  void refuse(ErrorCode code, std::string_view key, const std::string& message);

  [[nodiscard]] bool contains(std::string_view key) const { return file_->metadata.contains(key); }

  // Nothing for a key that is absent.
  [[nodiscard]] std::optional<std::int32_t> int32(std::string_view key);
  [[nodiscard]] std::optional<double> number(std::string_view key);
  [[nodiscard]] std::optional<bool> boolean(std::string_view key);
  [[nodiscard]] std::optional<std::string> string(std::string_view key);

  // Empty for a key that is absent.
  [[nodiscard]] std::vector<std::string> strings(std::string_view key);
  [[nodiscard]] std::vector<std::int32_t> int32s(std::string_view key);
  [[nodiscard]] std::vector<float> floats(std::string_view key);

  /// A value that must be there.
  template <class T>
  [[nodiscard]] T required(std::string_view key, std::optional<T> value) {
    if (!value && !contains(key)) {
      refuse(ErrorCode::malformed_file, key, "missing");
    }
    return std::move(value).value_or(T{});
  }

 private:
  template <class T>
  [[nodiscard]] const T* find(std::string_view key, std::string_view expected);
  template <class T>
  [[nodiscard]] std::vector<T> scalars(std::string_view key, GgufType type, GgufType unsigned_type,
                                       std::string_view expected);

  const GgufFile* file_;
  std::optional<Error> problem_;
};

}  // namespace troupe
