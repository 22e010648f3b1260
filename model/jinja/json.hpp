#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

class Runtime;

/// A JSON document as a value. Strings must be valid UTF-8; unsigned integers beyond 63 bits become floats.
[[nodiscard]] Outcome<Value> value_from_json(const nlohmann::ordered_json& json);

/// The options of Python's json.dumps that templates use.
struct JsonStyle {
  bool ensure_ascii = false;
  /// What one level is indented by; nothing puts everything on one line.
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Python's json.dumps(value).
[[nodiscard]] Outcome<std::string> json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace troupe::jinja
