#include "model/jinja/access.hpp"

#include <algorithm>

#include "model/jinja/function.hpp"
#include "model/jinja/limits.hpp"
#include "model/jinja/loop.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

std::string object_name(const Value& object) {
  return object.is<None>() ? "None" : "'" + std::string(object.type_name()) + " object'";
}

/// A method, or an attribute that is no item; nullopt where there is none.
Outcome<std::optional<Value>> own_attribute(const Value& object, std::string_view name) {
  if (const auto* undefined = object.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  if (const auto* space = object.get_if<Namespace*>()) {
    const auto found = (*space)->attributes.find(std::string(name));
    return found == (*space)->attributes.end() ? std::nullopt : std::optional(found->second);
  }
  if (const auto* loop = object.get_if<Loop>()) {
    auto value = (*loop)->attribute(name);
    if (!value || *value) {
      return value;
    }
  }
  if (const auto* const* macro = object.get_if<const Macro*>(); macro != nullptr && name == "name") {
    return Value::string((*macro)->definition->name);
  }
  if (const Builtin* method = find_method(object, name)) {
    return Value(std::make_shared<const BoundFunction>(BoundFunction{method, object}));
  }
  return std::nullopt;
}

Value missing(const Value& object, std::string_view kind, std::string_view key) {
  std::string message = object_name(object) + " has no ";
  message += kind;
  return Value::undefined(message.append(" '").append(key).append("'"));
}

/// Python's handling of an index: from the end if negative; nullopt outside.
std::optional<std::size_t> position_of(std::int64_t index, std::size_t length) {
  const auto count = static_cast<std::int64_t>(length);
  if (index < -count || index >= count) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

Outcome<std::optional<Value>> character(Runtime& runtime, const String& string, std::int64_t index) {
  const StringObject& object = *string.object;
  const auto position = position_of(index, object.length);
  if (!position) {
    return std::nullopt;
  }
  if (auto paid = runtime.work(object.length == object.text.size() ? 0 : object.text.size() / kBytesPerStep); !paid) {
    return pass(paid);
  }
  const std::size_t begin = byte_offset(object.text, object.length, *position);
  std::size_t end = begin;
  (void)next_code_point(object.text, end);
  return Value::string(object.text.substr(begin, end - begin), string.markup);
}

Outcome<std::optional<Value>> item(Runtime& runtime, const Value& object, const Value& key) {
  if (const auto* dict = object.get_if<Dict>()) {
    const Value* value = (*dict)->find(key);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  const auto index = as_integer(key);
  if (!index) {
    return std::nullopt;
  }
  if (const auto* list = object.get_if<List>(); list != nullptr && (*list)->kind != ListKind::generator) {
    const auto position = position_of(*index, (*list)->items.size());
    return position ? std::optional((*list)->items[*position]) : std::nullopt;
  }
  if (const auto* string = object.get_if<String>()) {
    return character(runtime, *string, *index);
  }
  return std::nullopt;
}

/// Positions that a slice selects, in order: `count` from `first` on, `step` apart.
struct Selection {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::size_t count = 0;
};

Selection select(const SliceBounds& bounds, std::int64_t step, std::size_t length) {
  const auto size = static_cast<std::int64_t>(length);
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? size : size - 1;
  const auto clamp = [&](std::optional<std::int64_t> bound, std::int64_t fallback) {
    if (!bound) {
      return fallback;
    }
    return *bound < 0 ? std::max(*bound + size, lowest) : std::min(*bound, highest);
  };
  const std::int64_t start = clamp(bounds.start, step > 0 ? lowest : highest);
  const std::int64_t stop = clamp(bounds.stop, step > 0 ? highest : lowest);
  const std::int64_t span = step > 0 ? stop - start : start - stop;
  if (span <= 0) {
    return {start, step, 0};
  }
  // A step beyond the sequence selects one element; the cut keeps the arithmetic in range.
  const std::int64_t stride = std::min(step > 0 ? step : -std::max(step, -size - 1), size + 1);
  return {start, step > 0 ? stride : -stride, static_cast<std::size_t>((span - 1) / stride + 1)};
}

std::string slice_text(const StringObject& object, const Selection& selected) {
  if (selected.step == 1) {
    const std::size_t begin = byte_offset(object.text, object.length, static_cast<std::size_t>(selected.first));
    const std::string_view rest = std::string_view(object.text).substr(begin);
    const std::size_t rest_length = object.length - static_cast<std::size_t>(selected.first);
    return std::string(rest.substr(0, byte_offset(rest, rest_length, selected.count)));
  }
  std::vector<std::uint32_t> starts;
  starts.reserve(object.length);
  for (std::size_t position = 0; position < object.text.size(); (void)next_code_point(object.text, position)) {
    starts.push_back(static_cast<std::uint32_t>(position));
  }
  std::string text;
  for (std::size_t i = 0; i < selected.count; ++i) {
    const auto index = selected.first + static_cast<std::int64_t>(i) * selected.step;
    std::size_t position = starts[static_cast<std::size_t>(index)];
    append_utf8(text, next_code_point(object.text, position));
  }
  return text;
}

}  // namespace

Outcome<Value> get_attribute(const Value& object, std::string_view name) {
  auto own = own_attribute(object, name);
  if (!own) {
    return pass(own);
  }
  if (*own) {
    return std::move(**own);
  }
  if (const auto* dict = object.get_if<Dict>()) {
    if (const Value* value = (*dict)->find(name)) {
      return *value;
    }
  }
  return missing(object, "attribute", name);
}

Outcome<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  if (const auto* undefined = object.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  const std::string* const name = key.text();
  auto paid = runtime.work(name == nullptr ? 0 : name->size() / kBytesPerStep);
  auto found = paid ? item(runtime, object, key) : Outcome<std::optional<Value>>(pass(paid));
  if (!found) {
    return pass(found);
  }
  if (*found) {
    return std::move(**found);
  }
  if (name != nullptr) {
    auto own = own_attribute(object, *name);
    if (!own) {
      return pass(own);
    }
    return *own ? std::move(**own) : missing(object, "attribute", *name);
  }
  auto shown = text_of(runtime, key);
  return shown ? Outcome<Value>(missing(object, "element", *shown)) : pass(shown);
}

Outcome<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  const std::int64_t step = bounds.step.value_or(1);
  if (step == 0) {
    return fault("slice: expected a step other than 0, found 0");
  }
  if (const auto* string = object.get_if<String>()) {
    const Selection selected = select(bounds, step, string->object->length);
    return selected.count == 0 ? Value::string("", string->markup)
                               : runtime.string(slice_text(*string->object, selected), string->markup);
  }
  if (const auto* list = object.get_if<List>(); list != nullptr && (*list)->kind != ListKind::generator) {
    const ListObject& source = **list;
    const Selection selected = select(bounds, step, source.items.size());
    std::vector<Value> items;
    items.reserve(selected.count);
    for (std::size_t i = 0; i < selected.count; ++i) {
      items.push_back(
          source.items[static_cast<std::size_t>(selected.first + static_cast<std::int64_t>(i) * selected.step)]);
    }
    return runtime.sequence(std::move(items), source.kind);
  }
  if (const auto* undefined = object.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  return missing(object, "element", "slice");
}

Outcome<List> iterate(Runtime& runtime, const Value& value) {
  if (const auto* list = value.get_if<List>()) {
    return *list;
  }
  std::vector<Value> items;
  if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& entry : (*dict)->entries()) {
      items.push_back(entry.first);
    }
  } else if (const auto* string = value.get_if<String>()) {
    const std::string& text = string->text();
    if (auto paid = runtime.produce(string->object->length * (sizeof(StringObject) + sizeof(Value))); !paid) {
      return pass(paid);
    }
    for (std::size_t position = 0; position < text.size();) {
      const std::size_t begin = position;
      (void)next_code_point(text, position);
      items.push_back(Value::string(text.substr(begin, position - begin)));
    }
  } else if (!value.is<Undefined>()) {
    return fault("expected something to iterate over, found " + std::string(value.type_name()));
  }
  auto made = runtime.list(std::move(items));
  return made ? Outcome<List>(*made->get_if<List>()) : pass(made);
}

Outcome<Value> length_of(const Value& value) {
  const auto number = [](std::size_t count) { return Value(static_cast<std::int64_t>(count)); };
  if (const auto* string = value.get_if<String>()) {
    return number(string->object->length);
  }
  if (const auto* list = value.get_if<List>(); list != nullptr && (*list)->kind != ListKind::generator) {
    return number((*list)->items.size());
  }
  if (const auto* dict = value.get_if<Dict>()) {
    return number((*dict)->entries().size());
  }
  if (value.is<Undefined>()) {
    return number(0);
  }
  return fault("length: expected a string, list or dict, found " + std::string(value.type_name()));
}

Outcome<Value> get_attribute_path(Runtime& runtime, const Value& object, const Value& path) {
  const auto* text = path.text();
  if (text == nullptr) {
    return get_item(runtime, object, path);
  }
  Value current = object;
  std::size_t begin = 0;
  while (begin <= text->size()) {
    const std::size_t end = std::min(text->find('.', begin), text->size());
    const std::string part = text->substr(begin, end - begin);
    const bool digits = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    auto next = get_item(runtime, current, digits ? Value(std::int64_t{std::stoi(part)}) : Value::string(part));
    if (!next) {
      return next;
    }
    current = std::move(*next);
    begin = end + 1;
  }
  return current;
}

}  // namespace troupe::jinja
