#include <algorithm>

#include "model/jinja/access.hpp"
#include "model/jinja/format.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/string_methods.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

const String& self_string(const Value& self) { return *self.get_if<String>(); }

Outcome<Value> part(Runtime& runtime, const String& self, std::string_view text) {
  return runtime.string(std::string(text), self.markup);
}

/// The string in an argument that must be one.
Outcome<std::string_view> text_argument(std::string_view method, std::string_view name, const Value* value) {
  if (value == nullptr) {
    return fault(std::string(method) + ": expected the argument '" + std::string(name) + "', found none");
  }
  if (const auto* text = value->text()) {
    return *text;
  }
  return wrong_type(method, name, "a string", *value);
}

template <bool Left, bool Right>
Outcome<Value> strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("strip", arguments, {"chars"});
  if (!given) {
    return pass(given);
  }
  const String& string = self_string(self);
  const Value* const characters = (*given)[0];
  constexpr Sides kSides{Left, Right};
  if (characters == nullptr || characters->is<None>()) {
    return part(runtime, string, strip_space(string.text(), kSides));
  }
  auto set = text_argument("strip", "chars", characters);
  return set ? part(runtime, string, strip_characters(string.text(), *set, kSides)) : pass(set);
}

Outcome<Value> pieces_to_list(Runtime& runtime, const String& self, const std::vector<std::string_view>& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  if (auto paid = runtime.produce(self.text().size() + pieces.size() * sizeof(StringObject)); !paid) {
    return pass(paid);
  }
  for (const std::string_view piece : pieces) {
    items.push_back(Value::string(std::string(piece), self.markup));
  }
  return runtime.list(std::move(items));
}

std::vector<std::string_view> split_left(std::string_view text, std::string_view separator, std::int64_t limit) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  for (; limit != 0; --limit) {
    const std::size_t found = find_text(text, separator, begin);
    if (found == kNone) {
      break;
    }
    pieces.push_back(text.substr(begin, found - begin));
    begin = found + separator.size();
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::vector<std::string_view> split_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> pieces;
  text = strip_space(text, {true, false});
  while (!text.empty()) {
    std::size_t end = 0;
    for (std::size_t next = 0; limit != 0 && end < text.size(); end = next) {
      if (is_space(next_code_point(text, next))) {
        break;
      }
    }
    pieces.push_back(limit == 0 ? text : text.substr(0, end));
    text = limit == 0 ? "" : strip_space(text.substr(end), {true, false});
    --limit;
  }
  return pieces;
}

/// Splitting from the right is splitting the mirrored text from the left. Bytes are mirrored: pieces are cut at whole
/// characters again once they are mirrored back.
std::vector<std::string_view> split_right(std::string_view text, std::string_view separator, std::int64_t limit) {
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string mirrored_separator(separator.rbegin(), separator.rend());
  std::vector<std::string_view> pieces;
  for (const std::string_view piece : split_left(mirrored, mirrored_separator, limit)) {
    const auto offset = static_cast<std::size_t>(piece.data() - mirrored.data());
    pieces.push_back(text.substr(text.size() - offset - piece.size(), piece.size()));
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_space_right(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> words = split_space(text, -1);
  if (limit < 0 || static_cast<std::size_t>(limit) >= words.size()) {
    return words;
  }
  // What was not cut off is one piece, up to the end of its last word.
  const std::size_t kept = words.size() - static_cast<std::size_t>(limit);
  const std::string_view last = words[kept - 1];
  const std::string_view head = text.substr(0, static_cast<std::size_t>(last.data() + last.size() - text.data()));
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(kept));
  words.insert(words.begin(), head);
  return words;
}

template <bool FromRight>
Outcome<Value> split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("split", arguments, {"sep", "maxsplit"});
  if (!given) {
    return pass(given);
  }
  auto limit = integer_or((*given)[1], -1, "split", "maxsplit");
  if (!limit) {
    return pass(limit);
  }
  const String& string = self_string(self);
  const std::int64_t cuts = std::max<std::int64_t>(*limit, -1);
  const Value* const separator = (*given)[0];
  if (separator == nullptr || separator->is<None>()) {
    return pieces_to_list(runtime, string,
                          FromRight ? split_space_right(string.text(), cuts) : split_space(string.text(), cuts));
  }
  auto text = text_argument("split", "sep", separator);
  if (!text) {
    return pass(text);
  }
  if (text->empty()) {
    return fault("split: expected a separator, found an empty string");
  }
  return pieces_to_list(runtime, string,
                        FromRight ? split_right(string.text(), *text, cuts) : split_left(string.text(), *text, cuts));
}

Outcome<Value> splitlines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("splitlines", arguments, {"keepends"});
  if (!given) {
    return pass(given);
  }
  const bool keep_ends = (*given)[0] != nullptr && (*given)[0]->truthy();
  return pieces_to_list(runtime, self_string(self), split_lines(self_string(self).text(), keep_ends));
}

template <bool AtEnd>
Outcome<Value> matches(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  const std::string_view name = AtEnd ? "endswith" : "startswith";
  auto given = parameters<1>(name, arguments, {"prefix"});
  if (!given) {
    return pass(given);
  }
  const std::string_view text = self_string(self).text();
  const auto fits = [&](std::string_view wanted) { return AtEnd ? text.ends_with(wanted) : text.starts_with(wanted); };
  const auto* list = (*given)[0] == nullptr ? nullptr : (*given)[0]->get_if<List>();
  if (list != nullptr && (*list)->kind == ListKind::tuple) {
    bool any = false;
    for (const Value& item : (*list)->items) {
      auto wanted = text_argument(name, "an element", &item);
      if (!wanted) {
        return pass(wanted);
      }
      any = any || fits(*wanted);
    }
    return Value(any);
  }
  auto wanted = text_argument(name, "prefix", (*given)[0]);
  return wanted ? Outcome<Value>(Value(fits(*wanted))) : pass(wanted);
}

template <bool AtEnd>
Outcome<Value> remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>(AtEnd ? "removesuffix" : "removeprefix", arguments, {"affix"});
  auto affix = given ? text_argument("removeprefix", "affix", (*given)[0]) : Outcome<std::string_view>(pass(given));
  if (!affix) {
    return pass(affix);
  }
  std::string_view text = self_string(self).text();
  if (AtEnd && text.ends_with(*affix)) {
    text.remove_suffix(affix->size());
  } else if (!AtEnd && text.starts_with(*affix)) {
    text.remove_prefix(affix->size());
  }
  return part(runtime, self_string(self), text);
}

Outcome<Value> replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("replace", arguments, {"old", "new", "count"});
  if (!given) {
    return pass(given);
  }
  auto from = text_argument("replace", "old", (*given)[0]);
  auto to = text_argument("replace", "new", (*given)[1]);
  auto limit = integer_or((*given)[2], -1, "replace", "count");
  if (!from || !to || !limit) {
    return !from ? pass(from) : !to ? pass(to) : pass(limit);
  }
  return replace_text(runtime, self_string(self), *from, *to, *limit);
}

Outcome<Value> join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("join", arguments, {"iterable"});
  auto items =
      given ? iterate(runtime, (*given)[0] == nullptr ? Value(None{}) : *(*given)[0]) : Outcome<List>(pass(given));
  if (!items) {
    return pass(items);
  }
  for (const Value& item : (*items)->items) {
    if (item.text() == nullptr) {
      return wrong_type("join", "an element", "a string", item);
    }
  }
  auto joined = join_text(runtime, self_string(self).text(), (*items)->items);
  return joined ? runtime.string(std::move(*joined)) : pass(joined);
}

/// Number of the code point where `needle` is within [start, stop), or -1.
template <bool FromRight>
Outcome<std::int64_t> search(const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("find", arguments, {"sub", "start", "end"});
  auto needle = given ? text_argument("find", "sub", (*given)[0]) : Outcome<std::string_view>(pass(given));
  if (!needle) {
    return pass(needle);
  }
  const StringObject& string = *self_string(self).object;
  const auto length = static_cast<std::int64_t>(string.length);
  auto start = integer_or((*given)[1], 0, "find", "start");
  auto stop = integer_or((*given)[2], length, "find", "end");
  if (!start || !stop) {
    return !start ? pass(start) : pass(stop);
  }
  const auto bound = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + length : index, 0, length);
  };
  if (*start > length || bound(*start) > bound(*stop)) {
    return -1;
  }
  const std::size_t begin = byte_offset(string.text, string.length, static_cast<std::size_t>(bound(*start)));
  const std::size_t end = byte_offset(string.text, string.length, static_cast<std::size_t>(bound(*stop)));
  const std::string_view range = std::string_view(string.text).substr(begin, end - begin);
  const std::size_t found = FromRight ? find_last_text(range, *needle, range.size()) : find_text(range, *needle);
  return found == kNone ? -1 : bound(*start) + static_cast<std::int64_t>(count_code_points(range.substr(0, found)));
}

template <bool FromRight>
Outcome<Value> find(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto found = search<FromRight>(self, arguments);
  return found ? Outcome<Value>(Value(*found)) : pass(found);
}

Outcome<Value> count(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("count", arguments, {"sub"});
  auto needle = given ? text_argument("count", "sub", (*given)[0]) : Outcome<std::string_view>(pass(given));
  if (!needle) {
    return pass(needle);
  }
  const StringObject& string = *self_string(self).object;
  std::size_t times = needle->empty() ? string.length + 1 : 0;
  for (std::size_t at = 0; !needle->empty() && (at = find_text(string.text, *needle, at)) != kNone;
       at += needle->size()) {
    ++times;
  }
  return Value(static_cast<std::int64_t>(times));
}

Outcome<Value> format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return format_braces(runtime, self_string(self), arguments);
}

constexpr auto kMethods = std::to_array<Builtin>({
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"startswith", matches<false>},
    {"endswith", matches<true>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"join", join},
    {"find", find<false>},
    {"rfind", find<true>},
    {"count", count},
    {"format", format},
});

}  // namespace

const Builtin* find_text_method(std::string_view name) { return find_builtin(kMethods, name); }

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t end = position;
    const char32_t c = next_code_point(text, position);
    if ((c < 0x0A || c > 0x0D) && (c < 0x1C || c > 0x1E) && c != 0x85 && c != 0x2028 && c != 0x2029) {
      continue;
    }
    if (c == U'\r' && position < text.size() && text[position] == '\n') {
      ++position;
    }
    lines.push_back(text.substr(begin, (keep_ends ? position : end) - begin));
    begin = position;
  }
  if (begin < text.size()) {
    lines.push_back(text.substr(begin));
  }
  return lines;
}

}  // namespace troupe::jinja
