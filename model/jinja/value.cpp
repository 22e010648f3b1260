#include "model/jinja/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/jinja/function.hpp"
#include "model/jinja/loop.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

/// Entries from which on a dict has an index; fewer are searched one by one.
constexpr std::size_t kIndexedEntries = 8;

bool is_whole(double number) { return std::trunc(number) == number && std::abs(number) < 9e18; }

}  // namespace

StringObject::StringObject(std::string content) : text(std::move(content)), length(count_code_points(text)) {}

std::string dict_key(const Value& key) {
  if (const auto* text = key.text()) {
    return "s" + *text;
  }
  if (const auto* flag = key.get_if<bool>()) {
    return *flag ? "i1" : "i0";
  }
  if (const auto* integer = key.get_if<std::int64_t>()) {
    return "i" + std::to_string(*integer);
  }
  if (const auto* number = key.get_if<double>()) {
    return is_whole(*number) ? "i" + std::to_string(static_cast<std::int64_t>(*number)) : "f" + float_text(*number);
  }
  return key.is<None>() ? "n" : "";
}

DictObject::DictObject(Entries entries) {
  const bool indexed = entries.size() >= kIndexedEntries;
  for (auto& [key, value] : entries) {
    depth_ = std::max(depth_, 1 + value.depth());
    if (indexed) {
      const auto [place, added] = index_.emplace(dict_key(key), entries_.size());
      if (!added) {
        entries_[place->second].second = std::move(value);
        continue;
      }
    } else if (const auto same = position_of(key)) {
      entries_[*same].second = std::move(value);
      continue;
    }
    entries_.emplace_back(std::move(key), std::move(value));
  }
}

std::optional<std::size_t> DictObject::position_of(const Value& key) const {
  const auto* text = key.text();
  if (text != nullptr && index_.empty()) {
    return position_of(*text);
  }
  const std::string wanted = dict_key(key);
  if (!index_.empty()) {
    const auto found = index_.find(wanted);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return dict_key(e.first) == wanted; });
  return found == entries_.end() ? std::nullopt : std::optional<std::size_t>(found - entries_.begin());
}

std::optional<std::size_t> DictObject::position_of(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find("s" + std::string(key));
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (const auto* text = entries_[i].first.text(); text != nullptr && *text == key) {
      return i;
    }
  }
  return std::nullopt;
}

const Value* DictObject::find(const Value& key) const {
  const auto position = position_of(key);
  return position ? &entries_[*position].second : nullptr;
}

const Value* DictObject::find(std::string_view key) const {
  const auto position = position_of(key);
  return position ? &entries_[*position].second : nullptr;
}

Value Value::string(std::string text, bool markup) {
  return String{std::make_shared<const StringObject>(std::move(text)), markup};
}

Value Value::undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

const std::string* Value::text() const {
  const auto* string = get_if<String>();
  return string == nullptr ? nullptr : &string->text();
}

bool Value::truthy() const {
  if (const auto* flag = get_if<bool>()) {
    return *flag;
  }
  if (const auto* integer = get_if<std::int64_t>()) {
    return *integer != 0;
  }
  if (const auto* number = get_if<double>()) {
    return *number != 0.0;
  }
  if (const auto* string = text()) {
    return !string->empty();
  }
  if (const auto* list = get_if<List>()) {
    return (*list)->kind == ListKind::generator || !(*list)->items.empty();
  }
  if (const auto* dict = get_if<Dict>()) {
    return !(*dict)->entries().empty();
  }
  return !is<Undefined>() && !is<None>();
}

std::string_view Value::type_name() const {
  static constexpr std::array<std::string_view, std::variant_size_v<Storage>> kNames = {
      "Undefined", "NoneType", "bool", "int", "float", "str", "list", "dict", "function", "Namespace", "Macro", "loop"};
  if (const auto* list = get_if<List>(); list != nullptr && (*list)->kind != ListKind::list) {
    return (*list)->kind == ListKind::tuple ? "tuple" : "generator";
  }
  return kNames.at(storage_.index());
}

int Value::depth() const {
  if (const auto* list = get_if<List>()) {
    return (*list)->depth;
  }
  if (const auto* dict = get_if<Dict>()) {
    return (*dict)->depth();
  }
  return 0;
}

}  // namespace troupe::jinja
