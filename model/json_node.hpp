#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"

namespace troupe {

/// The first thing that is wrong with a document.
struct JsonProblem {
  std::optional<Error> error;
};

/// A value in a JSON document and its place. Reading what is not there as expected gives a neutral value and notes the
/// problem, so that a reader of many fields checks once, at its end.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string pointer, JsonProblem& problem)
      : value_(&value), pointer_(std::move(pointer)), problem_(&problem) {}

  /// Whether the value is null, as it is when a field is missing.
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] bool is_string() const { return value_->is_string(); }
  [[nodiscard]] bool is_array() const { return value_->is_array(); }
  /// A field of an object; null if there is none.
  [[nodiscard]] JsonNode operator[](std::string_view key) const;
  [[nodiscard]] std::vector<JsonNode> elements() const;
  /// The keys of an object.
  [[nodiscard]] std::vector<std::string> keys() const;

  [[nodiscard]] std::string string() const;
  [[nodiscard]] std::string string_or(std::string fallback) const { return is_null() ? fallback : string(); }
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] bool boolean_or(bool fallback) const { return is_null() ? fallback : boolean(); }
  [[nodiscard]] std::int64_t integer() const;
  /// Any number, as a double.
  [[nodiscard]] double number() const;

  /// Notes that this value is wrong, if nothing was before.
  void refuse(ErrorCode code, const std::string& message) const;
  void refuse(const Error& error) const { refuse(error.code, error.message); }
  [[nodiscard]] const JsonProblem& problem() const { return *problem_; }

 private:
  void expect(bool as_expected, std::string_view expected) const;

  const nlohmann::json* value_;
  std::string pointer_;
  JsonProblem* problem_;
};

}  // namespace troupe
