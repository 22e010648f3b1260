#include "model/jinja/sequence_filters.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/jinja/access.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/sorting.hpp"
#include "model/jinja/string_methods.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

/// What Python gives as a generator.
Outcome<Value> generator(Runtime& runtime, std::vector<Value> items) {
  return runtime.sequence(std::move(items), ListKind::generator);
}

/// What map and select go over: they take any false value for nothing.
Outcome<List> items_if_true(Runtime& runtime, const Value& value) {
  return value.truthy() ? iterate(runtime, value) : std::make_shared<const ListObject>();
}

/// Takes the keyword argument of that name out; nothing if it is not there.
std::optional<Value> take_keyword(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                                  [name](const auto& argument) { return argument.first == name; });
  if (found == arguments.keyword.end()) {
    return std::nullopt;
  }
  Value value = std::move(found->second);
  arguments.keyword.erase(found);
  return value;
}

/// Items seen through `attribute` (null: themselves); strings in lower case unless `case_sensitive`.
Outcome<std::vector<Value>> keys_of(Runtime& runtime, const std::vector<Value>& items, const Value* attribute,
                                    bool case_sensitive) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) {
    auto key = attribute == nullptr ? Outcome<Value>(item) : get_attribute_path(runtime, item, *attribute);
    if (!key) {
      return pass(key);
    }
    if (!case_sensitive && key->text() != nullptr) {
      key = runtime.string(to_lower(*key->text()));
    }
    if (!key) {
      return pass(key);
    }
    keys.push_back(std::move(*key));
  }
  return keys;
}

Outcome<Value> join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("join", arguments, {"d", "attribute"});
  if (!given) {
    return pass(given);
  }
  const auto [separator, attribute] = *given;
  auto items = iterate(runtime, self);
  if (!items) {
    return pass(items);
  }
  auto keys = keys_of(runtime, (*items)->items, attribute, /*case_sensitive=*/true);
  if (!keys) {
    return pass(keys);
  }
  auto shown = separator == nullptr ? Outcome<std::string>("") : text_of(runtime, *separator);
  auto text = shown ? join_text(runtime, *shown, *keys) : pass(shown);
  return text ? runtime.string(std::move(*text)) : pass(text);
}

template <bool Last>
Outcome<Value> end_item(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  auto items = iterate(runtime, self);
  if (!items) {
    return pass(items);
  }
  const std::vector<Value>& values = (*items)->items;
  if (values.empty()) {
    return Value::undefined(Last ? "No last item, sequence was empty." : "No first item, sequence was empty.");
  }
  return Last ? values.back() : values.front();
}

Outcome<Value> to_list(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  auto items = iterate(runtime, self);
  return items ? runtime.list((*items)->items) : pass(items);
}

Outcome<Value> reverse(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  if (self.is<String>()) {
    return get_slice(runtime, self, {std::nullopt, std::nullopt, -1});
  }
  auto items = iterate(runtime, self);
  return items ? generator(runtime, {(*items)->items.rbegin(), (*items)->items.rend()}) : pass(items);
}

Outcome<Value> dict_items(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  if (self.is<Undefined>()) {
    return generator(runtime, {});
  }
  if (!self.is<Dict>()) {
    return wrong_type("items", "the value", "a dict", self);
  }
  auto items = find_method(self, "items")->function(runtime, self, {});
  return items ? generator(runtime, (*items->get_if<List>())->items) : items;
}

Outcome<Value> sort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  if (!given) {
    return pass(given);
  }
  const auto [descending, case_sensitive, attribute] = *given;
  auto items = iterate(runtime, self);
  if (!items) {
    return pass(items);
  }
  auto keys = keys_of(runtime, (*items)->items, attribute, case_sensitive != nullptr && case_sensitive->truthy());
  if (!keys) {
    return pass(keys);
  }
  auto order = sorted_order(runtime, *keys, descending != nullptr && descending->truthy());
  if (!order) {
    return pass(order);
  }
  std::vector<Value> sorted;
  for (const std::size_t index : *order) {
    sorted.push_back((*items)->items[index]);
  }
  return runtime.list(std::move(sorted));
}

Outcome<Value> sort_dict(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!given) {
    return pass(given);
  }
  const auto [case_sensitive, by, descending] = *given;
  const auto* const dict = self.get_if<Dict>();
  if (dict == nullptr) {
    return wrong_type("dictsort", "the value", "a dict", self);
  }
  const bool by_value = by != nullptr && by->text() != nullptr && *by->text() == "value";
  std::vector<Value> values;
  for (const auto& [key, value] : (*dict)->entries()) {
    values.push_back(by_value ? value : key);
  }
  auto keys = keys_of(runtime, values, nullptr, case_sensitive != nullptr && case_sensitive->truthy());
  if (!keys) {
    return pass(keys);
  }
  auto order = sorted_order(runtime, *keys, descending != nullptr && descending->truthy());
  if (!order) {
    return pass(order);
  }
  std::vector<Value> sorted;
  for (const std::size_t index : *order) {
    const auto& [key, value] = (*dict)->entries()[index];
    auto pair = runtime.tuple({key, value});
    if (!pair) {
      return pair;
    }
    sorted.push_back(std::move(*pair));
  }
  return runtime.list(std::move(sorted));
}

Outcome<Value> unique(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("unique", arguments, {"case_sensitive", "attribute"});
  if (!given) {
    return pass(given);
  }
  auto items = iterate(runtime, self);
  if (!items) {
    return pass(items);
  }
  auto keys = keys_of(runtime, (*items)->items, (*given)[1], (*given)[0] != nullptr && (*given)[0]->truthy());
  if (!keys) {
    return pass(keys);
  }
  std::vector<Value> found;
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    std::string key = dict_key((*keys)[i]);
    if (key.empty()) {
      return fault("unique: expected scalars, found " + std::string((*keys)[i].type_name()));
    }
    if (seen.insert(std::move(key)).second) {
      found.push_back((*items)->items[i]);
    }
  }
  return generator(runtime, std::move(found));
}

template <bool Maximum>
Outcome<Value> extreme(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>(Maximum ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  if (!given) {
    return pass(given);
  }
  auto items = iterate(runtime, self);
  if (!items) {
    return pass(items);
  }
  auto keys = keys_of(runtime, (*items)->items, (*given)[1], (*given)[0] != nullptr && (*given)[0]->truthy());
  if (!keys) {
    return pass(keys);
  }
  if (keys->empty()) {
    return Value::undefined("No aggregated item, sequence was empty.");
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < keys->size(); ++i) {
    auto better = Maximum ? less(runtime, (*keys)[best], (*keys)[i]) : less(runtime, (*keys)[i], (*keys)[best]);
    if (!better) {
      return pass(better);
    }
    best = *better ? i : best;
  }
  return (*items)->items[best];
}

Outcome<Value> map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  Arguments rest = arguments;
  const std::optional<Value> attribute = take_keyword(rest, "attribute");
  const std::optional<Value> fallback = take_keyword(rest, "default");
  const Builtin* filter = nullptr;
  if (!attribute) {
    if (rest.positional.empty() || rest.positional[0].text() == nullptr) {
      return fault("map: expected the name of a filter or attribute=");
    }
    filter = find_filter(*rest.positional[0].text());
    if (filter == nullptr) {
      return fault("no filter named '" + *rest.positional[0].text() + "'");
    }
    rest.positional.erase(rest.positional.begin());
  }
  auto items = items_if_true(runtime, self);
  if (!items) {
    return pass(items);
  }
  std::vector<Value> mapped;
  for (const Value& item : (*items)->items) {
    auto value = attribute ? get_attribute_path(runtime, item, *attribute) : invoke(runtime, *filter, item, rest);
    if (!value) {
      return value;
    }
    mapped.push_back(value->is<Undefined>() && fallback ? *fallback : std::move(*value));
  }
  return generator(runtime, std::move(mapped));
}

/// select, reject, selectattr and rejectattr.
template <bool Attribute, bool Keep>
Outcome<Value> filter_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  Arguments rest = arguments;
  std::optional<Value> attribute;
  if (Attribute) {
    if (rest.positional.empty()) {
      return fault("selectattr: expected the name of an attribute");
    }
    attribute = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  const Builtin* test = nullptr;
  if (!rest.positional.empty()) {
    const std::string* const name = rest.positional.front().text();
    test = name == nullptr ? nullptr : find_test(*name);
    if (test == nullptr) {
      return fault("select: expected the name of a test");
    }
    rest.positional.erase(rest.positional.begin());
  }
  auto items = items_if_true(runtime, self);
  if (!items) {
    return pass(items);
  }
  std::vector<Value> kept;
  for (const Value& item : (*items)->items) {
    auto value = attribute ? get_attribute_path(runtime, item, *attribute) : Outcome<Value>(item);
    if (value && test != nullptr) {
      value = invoke(runtime, *test, *value, rest);
    }
    if (!value) {
      return value;
    }
    if (value->truthy() == Keep) {
      kept.push_back(item);
    }
  }
  return generator(runtime, std::move(kept));
}

constexpr auto kFilters = std::to_array<Builtin>({{"dictsort", sort_dict},
                                                  {"first", end_item<false>},
                                                  {"items", dict_items},
                                                  {"join", join},
                                                  {"last", end_item<true>},
                                                  {"list", to_list},
                                                  {"map", map},
                                                  {"max", extreme<true>},
                                                  {"min", extreme<false>},
                                                  {"reject", filter_items<false, false>},
                                                  {"rejectattr", filter_items<true, false>},
                                                  {"reverse", reverse},
                                                  {"select", filter_items<false, true>},
                                                  {"selectattr", filter_items<true, true>},
                                                  {"sort", sort},
                                                  {"unique", unique}});

}  // namespace

const Builtin* find_sequence_filter(std::string_view name) { return find_builtin(kFilters, name); }

}  // namespace troupe::jinja
