#pragma once

#include <string_view>

#include "model/jinja/function.hpp"

/// Methods of strings, in two groups: what cuts and searches, and what changes or asks for the kind of characters.
namespace troupe::jinja {

[[nodiscard]] const Builtin* find_text_method(std::string_view name);
[[nodiscard]] const Builtin* find_character_method(std::string_view name);

/// str.splitlines() without the line ends.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
/// str.replace; `limit` of -1 replaces all.
[[nodiscard]] Outcome<Value> replace_text(Runtime& runtime, const String& text, std::string_view from,
                                          std::string_view to, std::int64_t limit);
/// separator.join(items), where items are shown as by `str`.
[[nodiscard]] Outcome<std::string> join_text(Runtime& runtime, std::string_view separator,
                                             const std::vector<Value>& items);

}  // namespace troupe::jinja
