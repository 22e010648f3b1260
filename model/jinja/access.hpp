#pragma once

#include <optional>
#include <string_view>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

/// Attributes, items and iteration.
namespace troupe::jinja {

class Runtime;

/// `object.name`: a method or attribute, else the entry of a dict, else undefined.
[[nodiscard]] Outcome<Value> get_attribute(const Value& object, std::string_view name);
/// `object[key]`: an item, else a method or attribute, else undefined.
[[nodiscard]] Outcome<Value> get_item(Runtime& runtime, const Value& object, const Value& key);

struct SliceBounds {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::optional<std::int64_t> step;
};

[[nodiscard]] Outcome<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds);

/// The elements that a loop over `value` sees: characters of a string, keys of a dict, nothing for an undefined value.
[[nodiscard]] Outcome<List> iterate(Runtime& runtime, const Value& value);

/// Number of characters, elements or entries.
[[nodiscard]] Outcome<Value> length_of(const Value& value);

/// What filters take as `attribute`: "a.b.0", or an integer.
[[nodiscard]] Outcome<Value> get_attribute_path(Runtime& runtime, const Value& object, const Value& path);

}  // namespace troupe::jinja
