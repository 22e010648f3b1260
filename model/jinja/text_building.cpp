#include "model/jinja/runtime.hpp"
#include "model/jinja/string_methods.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

/// Byte offsets where `from` occurs, each after the end of the one before; an empty `from` occurs around every
/// character.
std::vector<std::size_t> occurrences(std::string_view text, std::string_view from, std::int64_t limit) {
  std::vector<std::size_t> found;
  std::size_t position = 0;
  while (limit != 0) {
    position = find_text(text, from, position);
    if (position == std::string_view::npos) {
      break;
    }
    found.push_back(position);
    --limit;
    if (!from.empty()) {
      position += from.size();
    } else if (position == text.size()) {
      break;
    } else {
      (void)next_code_point(text, position);
    }
  }
  return found;
}

}  // namespace

Outcome<Value> replace_text(Runtime& runtime, const String& text, std::string_view from, std::string_view to,
                            std::int64_t limit) {
  const std::string_view source = text.text();
  const std::vector<std::size_t> found = occurrences(source, from, limit);
  if (auto fits = Runtime::check_text_size(source.size() + found.size() * to.size()); !fits) {
    return pass(fits);
  }
  std::string result;
  result.reserve(source.size() + found.size() * to.size());
  std::size_t begin = 0;
  for (const std::size_t position : found) {
    result += source.substr(begin, position - begin);
    result += to;
    begin = position + from.size();
  }
  result += source.substr(begin);
  return runtime.string(std::move(result), text.markup);
}

Outcome<std::string> join_text(Runtime& runtime, std::string_view separator, const std::vector<Value>& items) {
  std::string joined;
  bool first = true;
  for (const Value& item : items) {
    joined += first ? "" : separator;
    first = false;
    auto done = runtime.work();
    if (done) {
      done = append_text(runtime, joined, item);
    }
    if (!done) {
      return pass(done);
    }
  }
  return joined;
}

}  // namespace troupe::jinja
