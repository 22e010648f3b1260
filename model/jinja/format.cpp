#include "model/jinja/format.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

/// Gives the operands of % one after the other, or by name.
class Operands {
 public:
  explicit Operands(const Value& operand) : operand_(operand) {
    if (const auto* list = operand.get_if<List>(); list != nullptr && (*list)->kind == ListKind::tuple) {
      tuple_ = list->get();
    }
  }

  Outcome<Value> next() {
    const std::size_t given = tuple_ == nullptr ? 1 : tuple_->items.size();
    if (used_ >= given) {
      return fault("%: expected more than " + std::to_string(given) + " operand(s), found no more");
    }
    ++used_;
    return tuple_ == nullptr ? operand_ : tuple_->items[used_ - 1];
  }

  [[nodiscard]] Outcome<Value> named(std::string_view name) const {
    const Dict* const dict = operand_.get_if<Dict>();
    const Value* const value = dict == nullptr ? nullptr : (*dict)->find(name);
    if (value == nullptr) {
      return fault("%: expected a dict with the key '" + std::string(name) + "', found none");
    }
    return *value;
  }

  /// Whether operands are left that Python insists on using: a dict or list may be left out.
  [[nodiscard]] bool left_over() const {
    return tuple_ != nullptr ? used_ < tuple_->items.size()
                             : used_ == 0 && !operand_.is<Dict>() && !operand_.is<List>();
  }

 private:
  const Value& operand_;
  const ListObject* tuple_ = nullptr;
  std::size_t used_ = 0;
};

Outcome<void> append_converted(Runtime& runtime, std::string& out, char conversion, const Value& value) {
  switch (conversion) {
    case 's':
      return append_text(runtime, out, value);
    case 'r':
      return append_repr(runtime, out, value);
    case 'd':
    case 'i': {
      if (const auto integer = as_integer(value)) {
        out += std::to_string(*integer);
        return {};
      }
      const double* const number = value.get_if<double>();
      if (number == nullptr || !(std::abs(*number) < 9e18)) {
        return wrong_type("%d", "the operand", "a number of at most 64 bits", value);
      }
      out += std::to_string(static_cast<std::int64_t>(*number));
      return {};
    }
    default:
      return fault(std::string("%: expected one of the conversions s, r, d, i and %, found '") + conversion + "'");
  }
}

/// The argument that a field between braces stands for.
/// @param next Number of the next field without a name.
Outcome<Value> field_value(std::string_view field, const Arguments& arguments, std::size_t& next) {
  if (field.find_first_of(".[!:{") != kNone) {
    return fault("format: expected a plain field such as {}, {0} or {name}, found '{" + std::string(field) + "}'");
  }
  if (field.find_first_not_of("0123456789") == kNone && field.size() < 10) {
    const std::size_t index = field.empty() ? next++ : static_cast<std::size_t>(std::stoul(std::string(field)));
    if (index < arguments.positional.size()) {
      return arguments.positional[index];
    }
  }
  for (const auto& [name, value] : arguments.keyword) {
    if (name == field) {
      return value;
    }
  }
  return fault("format: expected an argument for '{" + std::string(field) + "}', found none");
}

/// Appends a value as part of a text that may be safe HTML, which what is put into it is not.
Outcome<void> append_part(Runtime& runtime, std::string& out, const String& format, const Value& value) {
  if (!format.markup) {
    return append_text(runtime, out, value);
  }
  auto text = text_of(runtime, value);
  if (!text) {
    return pass(text);
  }
  append_escaped(out, *text);
  return Runtime::check_text_size(out.size());
}

}  // namespace

Outcome<Value> format_percent(Runtime& runtime, const String& format, const Value& operand) {
  const std::string_view text = format.text();
  Operands operands(operand);
  std::string out;
  std::size_t position = 0;
  while (true) {
    const std::size_t mark = std::min(text.find('%', position), text.size());
    out += text.substr(position, mark - position);
    if (mark == text.size()) {
      break;
    }
    position = mark + 1;
    std::optional<std::string_view> name;
    if (position < text.size() && text[position] == '(') {
      const std::size_t end = std::min(text.find(')', position), text.size() - 1);
      name = text.substr(position + 1, end - position - 1);
      position = end + 1;
    }
    if (position >= text.size()) {
      return fault("%: expected a conversion after '%', found the end of the format");
    }
    const char conversion = text[position++];
    if (conversion == '%') {
      out += '%';
      continue;
    }
    auto value = name ? operands.named(*name) : operands.next();
    std::string shown;
    auto done = value ? append_converted(runtime, shown, conversion, *value) : Outcome<void>(pass(value));
    if (done) {
      done = append_part(runtime, out, format, Value::string(std::move(shown)));
    }
    if (!done) {
      return pass(done);
    }
  }
  if (operands.left_over()) {
    return fault("%: expected as many conversions as operands, found fewer");
  }
  return runtime.string(std::move(out), format.markup);
}

Outcome<Value> format_braces(Runtime& runtime, const String& format, const Arguments& arguments) {
  const std::string_view text = format.text();
  std::string out;
  std::size_t next = 0;
  std::size_t position = 0;
  while (true) {
    const std::size_t mark = std::min(text.find_first_of("{}", position), text.size());
    out += text.substr(position, mark - position);
    if (mark == text.size()) {
      return runtime.string(std::move(out), format.markup);
    }
    if (mark + 1 < text.size() && text[mark + 1] == text[mark]) {
      out += text[mark];
      position = mark + 2;
      continue;
    }
    const std::size_t end = text[mark] == '{' ? text.find('}', mark) : kNone;
    if (end == kNone) {
      return fault(std::string("format: expected braces in pairs, found a single '") + text[mark] + "'");
    }
    auto value = field_value(text.substr(mark + 1, end - mark - 1), arguments, next);
    auto done = value ? append_part(runtime, out, format, *value) : Outcome<void>(pass(value));
    if (!done) {
      return pass(done);
    }
    position = end + 1;
  }
}

}  // namespace troupe::jinja
