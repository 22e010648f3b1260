#include "model/jinja/access.hpp"
#include "model/jinja/function.hpp"
#include "model/jinja/loop.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/string_methods.hpp"

/// Methods of dicts, lists and loops. What changes its object is missing: jinja2's immutable sandbox forbids it.
namespace troupe::jinja {
namespace {

const DictObject& self_dict(const Value& self) { return **self.get_if<Dict>(); }
const ListObject& self_list(const Value& self) { return **self.get_if<List>(); }

Outcome<Value> dict_get(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("get", arguments, {"key", "default"});
  if (!given) {
    return pass(given);
  }
  const auto [key, fallback] = *given;
  if (key == nullptr) {
    return fault("get: expected a key, found no argument");
  }
  if (const Value* value = self_dict(self).find(*key)) {
    return *value;
  }
  return fallback == nullptr ? Value(None{}) : *fallback;
}

Outcome<Value> dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (auto none = assign_parameters("items", arguments, nullptr, nullptr, 0); !none) {
    return pass(none);
  }
  std::vector<Value> items;
  for (const auto& [key, value] : self_dict(self).entries()) {
    auto pair = runtime.tuple({key, value});
    if (!pair) {
      return pair;
    }
    items.push_back(std::move(*pair));
  }
  return runtime.list(std::move(items));
}

Outcome<Value> dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (auto none = assign_parameters("keys", arguments, nullptr, nullptr, 0); !none) {
    return pass(none);
  }
  auto keys = iterate(runtime, self);
  return keys ? Outcome<Value>(Value(*keys)) : pass(keys);
}

Outcome<Value> dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (auto none = assign_parameters("values", arguments, nullptr, nullptr, 0); !none) {
    return pass(none);
  }
  std::vector<Value> values;
  for (const auto& entry : self_dict(self).entries()) {
    values.push_back(entry.second);
  }
  return runtime.list(std::move(values));
}

/// Values never change: a copy is the value.
Outcome<Value> copy(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto none = assign_parameters("copy", arguments, nullptr, nullptr, 0);
  return none ? Outcome<Value>(self) : pass(none);
}

/// Position and number of the elements that equal the argument.
struct Matches {
  std::int64_t first = -1;
  std::int64_t count = 0;
};

Outcome<Matches> find_matches(Runtime& runtime, std::string_view method, const Value& self,
                              const Arguments& arguments) {
  auto given = parameters<1>(method, arguments, {"value"});
  if (!given) {
    return pass(given);
  }
  if ((*given)[0] == nullptr) {
    return fault(std::string(method) + ": expected a value, found no argument");
  }
  Matches matches;
  const std::vector<Value>& items = self_list(self).items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto same = equal(runtime, items[i], *(*given)[0]);
    if (!same) {
      return pass(same);
    }
    if (*same) {
      matches.first = matches.count == 0 ? static_cast<std::int64_t>(i) : matches.first;
      ++matches.count;
    }
  }
  return matches;
}

Outcome<Value> list_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto matches = find_matches(runtime, "index", self, arguments);
  if (!matches) {
    return pass(matches);
  }
  return matches->count == 0 ? Outcome<Value>(fault("index: expected the value in the list, found none"))
                             : Value(matches->first);
}

Outcome<Value> list_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto matches = find_matches(runtime, "count", self, arguments);
  return matches ? Outcome<Value>(Value(matches->count)) : pass(matches);
}

Outcome<Value> loop_cycle(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return fault("cycle: expected at least one value, found none");
  }
  return arguments.positional[(*self.get_if<Loop>())->index() % arguments.positional.size()];
}

constexpr auto kDictMethods = std::to_array<Builtin>(
    {{"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}, {"copy", copy}});
constexpr auto kListMethods = std::to_array<Builtin>({{"index", list_index}, {"count", list_count}});
constexpr auto kLoopMethods = std::to_array<Builtin>({{"cycle", loop_cycle}});
constexpr Builtin kListCopy{"copy", copy};

}  // namespace

const Builtin* find_method(const Value& self, std::string_view name) {
  if (self.is<String>()) {
    const Builtin* method = find_text_method(name);
    return method != nullptr ? method : find_character_method(name);
  }
  if (self.is<Dict>()) {
    return find_builtin(kDictMethods, name);
  }
  if (const auto* list = self.get_if<List>()) {
    if ((*list)->kind == ListKind::generator) {
      return nullptr;
    }
    return name == kListCopy.name && (*list)->kind == ListKind::list ? &kListCopy : find_builtin(kListMethods, name);
  }
  return self.is<Loop>() ? find_builtin(kLoopMethods, name) : nullptr;
}

}  // namespace troupe::jinja
