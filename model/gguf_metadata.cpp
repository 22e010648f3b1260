#include "model/gguf_metadata.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "model/error_text.hpp"
#include "model/gguf_cursor.hpp"

namespace troupe {
namespace {

struct Describe {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(std::uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return std::to_string(value); }
  std::string operator()(std::string_view value) const { return in_quotes(value); }
  std::string operator()(const GgufArray& /*value*/) const { return "an array"; }
};

}  // namespace

void GgufMetadata::refuse(ErrorCode code, std::string_view key, const std::string& message) {
  if (!problem_) {
    problem_ = Error{.code = code, .message = "metadata " + in_quotes(key) + ": " + message};
  }
}

template <class T>
const T* GgufMetadata::find(std::string_view key, std::string_view expected) {
  const auto entry = file_->metadata.find(key);
  if (entry == file_->metadata.end()) {
    return nullptr;
  }
  const T* value = std::get_if<T>(&entry->second);
  if (value == nullptr) {
    refuse(ErrorCode::malformed_file, key,
           "expected " + std::string(expected) + ", found " + std::visit(Describe(), entry->second));
  }
  return value;
}

std::optional<std::int32_t> GgufMetadata::int32(std::string_view key) {
  constexpr std::string_view kExpected = "an integer from 0 to 2^31 - 1";
  const auto* const value = find<std::int64_t>(key, kExpected);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (*value < 0 || *value > std::numeric_limits<std::int32_t>::max()) {
    refuse(ErrorCode::malformed_file, key, "expected " + std::string(kExpected) + ", found " + std::to_string(*value));
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

std::optional<double> GgufMetadata::number(std::string_view key) {
  const auto* const value = find<double>(key, "a floating-point number");
  if (value != nullptr && !std::isfinite(*value)) {
    refuse(ErrorCode::malformed_file, key, "expected a finite number, found " + std::to_string(*value));
    return std::nullopt;
  }
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) {
  const bool* const value = find<bool>(key, "true or false");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string> GgufMetadata::string(std::string_view key) {
  const auto* const value = find<std::string_view>(key, "a string");
  return value == nullptr ? std::nullopt : std::optional<std::string>(*value);
}

std::vector<std::string> GgufMetadata::strings(std::string_view key) {
  std::vector<std::string> strings;
  const auto* const array = find<GgufArray>(key, "an array of strings");
  if (array == nullptr) {
    return strings;
  }
  if (array->type != GgufType::string) {
    refuse(ErrorCode::malformed_file, key, "expected an array of strings, found one of another type");
    return strings;
  }
  GgufCursor cursor(array->bytes);
  strings.reserve(array->count);
  for (std::size_t i = 0; i < array->count; ++i) {
    strings.emplace_back(cursor.string());
  }
  return strings;
}

template <class T>
std::vector<T> GgufMetadata::scalars(std::string_view key, GgufType type, GgufType unsigned_type,
                                     std::string_view expected) {
  const auto* const array = find<GgufArray>(key, expected);
  if (array == nullptr) {
    return {};
  }
  if (array->type != type && array->type != unsigned_type) {
    refuse(ErrorCode::malformed_file, key, "expected " + std::string(expected) + ", found one of another type");
    return {};
  }
  std::vector<T> values(array->count);
  if (!values.empty()) {
    std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  }
  return values;
}

std::vector<std::int32_t> GgufMetadata::int32s(std::string_view key) {
  return scalars<std::int32_t>(key, GgufType::i32, GgufType::u32, "an array of 32-bit integers");
}

std::vector<float> GgufMetadata::floats(std::string_view key) {
  return scalars<float>(key, GgufType::f32, GgufType::f32, "an array of 32-bit floating-point numbers");
}

}  // namespace troupe
