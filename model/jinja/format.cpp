#include "model/jinja/format.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "model/jinja/access.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

/// Renders one format string of either kind.
class Formatter {
 public:
  Formatter(Runtime& runtime, const String& format) : runtime_(runtime), format_(format.text()), markup_(format.markup) {}

  Outcome<Value> percent(const Value& operand);
  Outcome<Value> braces(const Arguments& arguments);

 private:
  [[nodiscard]] bool at_end() const { return position_ >= format_.size(); }
  [[nodiscard]] bool take(char wanted) {
    const bool found = !at_end() && format_[position_] == wanted;
    position_ += found ? 1 : 0;
    return found;
  }
  /// Copies text up to the next of `marks`.
  Outcome<void> copy_until(std::string_view marks);
  Outcome<void> append(std::string text);
  Outcome<Value> finish() { return runtime_.string(std::move(out_), markup_); }

  Outcome<void> conversion(const Value& operand);
  Outcome<Value> next_operand(const Value& operand);
  Outcome<int> number_or_star(const Value& operand);
  Outcome<void> convert(FormatSpec spec, char type, Value value);

  Outcome<void> replacement(const Arguments& arguments, int depth, std::string& out);
  Outcome<Value> field(std::string_view name, const Arguments& arguments);
  Outcome<std::string> expand(std::string_view spec, const Arguments& arguments, int depth);

  Runtime& runtime_;
  std::string_view format_;
  bool markup_;
  std::size_t position_ = 0;
  /// Operands used so far.
  std::size_t used_ = 0;
  bool mapping_used_ = false;
  std::string out_;
};

Outcome<void> Formatter::copy_until(std::string_view marks) {
  const std::size_t end = std::min(format_.find_first_of(marks, position_), format_.size());
  out_ += format_.substr(position_, end - position_);
  position_ = end;
  return Runtime::check_text_size(out_.size());
}

Outcome<void> Formatter::append(std::string text) {
  if (markup_) {
    append_escaped(out_, text);
  } else {
    out_ += text;
  }
  return Runtime::check_text_size(out_.size());
}

Outcome<Value> Formatter::percent(const Value& operand) {
  while (true) {
    if (auto copied = copy_until("%"); !copied) {
      return pass(copied);
    }
    if (at_end()) {
      break;
    }
    ++position_;
    if (take('%')) {
      out_ += '%';
    } else if (auto done = conversion(operand); !done) {
      return pass(done);
    }
  }
  const auto* list = operand.get_if<List>();
  const std::size_t given = list != nullptr && (*list)->tuple ? (*list)->items.size() : 1;
  const bool may_be_unused = mapping_used_ || operand.is<Dict>() || (operand.is<List>() && !(*list)->tuple);
  if (used_ < given && !may_be_unused) {
    return fault("%: expected " + std::to_string(used_) + " operand(s), found " + std::to_string(given));
  }
  return finish();
}

Outcome<Value> Formatter::next_operand(const Value& operand) {
  const auto* list = operand.get_if<List>();
  if (list != nullptr && (*list)->tuple) {
    if (used_ >= (*list)->items.size()) {
      return fault("%: expected more than " + std::to_string(used_) + " operand(s), found no more");
    }
    return (*list)->items[used_++];
  }
  if (used_++ > 0) {
    return fault("%: expected a tuple of operands, found one value");
  }
  return operand;
}

Outcome<int> Formatter::number_or_star(const Value& operand) {
  if (take('*')) {
    auto value = next_operand(operand);
    if (!value) {
      return pass(value);
    }
    const auto number = as_integer(*value);
    if (!number || std::abs(*number) > static_cast<std::int64_t>(kMaxTextBytes)) {
      return fault("%: expected '*' to be a small integer, found another value");
    }
    return static_cast<int>(*number);
  }
  int number = 0;
  while (!at_end() && std::isdigit(static_cast<unsigned char>(format_[position_])) != 0) {
    number = number * 10 + (format_[position_++] - '0');
    if (number > static_cast<int>(kMaxTextBytes)) {
      return fault("%: expected a width of at most " + std::to_string(kMaxTextBytes) + ", found a larger one");
    }
  }
  return number;
}

Outcome<void> Formatter::conversion(const Value& operand) {
  std::optional<Value> named;
  if (take('(')) {
    const std::size_t end = format_.find(')', position_);
    if (end == std::string_view::npos || !operand.is<Dict>()) {
      return fault("%: expected '(name)' with a dict, found " + std::string(operand.type_name()));
    }
    const std::string_view name = format_.substr(position_, end - position_);
    const Value* value = (*operand.get_if<Dict>())->find(name);
    if (value == nullptr) {
      return fault("%: expected the key '" + std::string(name) + "', found none");
    }
    named = *value;
    mapping_used_ = true;
    position_ = end + 1;
  }
  FormatSpec spec;
  spec.align = '>';
  bool zero = false;
  for (; !at_end() && std::string_view("-+ 0#").find(format_[position_]) != std::string_view::npos; ++position_) {
    const char flag = format_[position_];
    spec.align = flag == '-' ? '<' : spec.align;
    spec.sign = flag == '+' || (flag == ' ' && spec.sign != '+') ? flag : spec.sign;
    spec.alternate = spec.alternate || flag == '#';
    zero = zero || flag == '0';
  }
  auto width = number_or_star(operand);
  if (!width) {
    return pass(width);
  }
  spec.align = *width < 0 ? '<' : spec.align;
  spec.width = static_cast<std::size_t>(std::abs(*width));
  if (take('.')) {
    auto precision = number_or_star(operand);
    if (!precision) {
      return pass(precision);
    }
    spec.precision = std::max(*precision, 0);
  }
  if (at_end()) {
    return fault("%: expected a conversion after '%', found the end of the format");
  }
  const char type = format_[position_++];
  if (zero && spec.align == '>' && type != 's' && type != 'r' && type != 'c') {
    spec.fill = "0";
    spec.align = '=';
  }
  if (named) {
    return convert(spec, type, std::move(*named));
  }
  auto value = next_operand(operand);
  return value ? convert(spec, type, std::move(*value)) : pass(value);
}

Outcome<void> Formatter::convert(FormatSpec spec, char type, Value value) {
  if (type == 's' || type == 'r' || type == 'a') {
    std::string text;
    auto done = type == 's' ? append_text(runtime_, text, value) : append_repr(runtime_, text, value);
    if (!done) {
      return done;
    }
    value = Value::string(std::move(text));
  } else if (type == 'c' && value.text() != nullptr) {
    type = 's';
  } else if (type == 'd' || type == 'i' || type == 'u') {
    const auto number = as_number(value);
    if (!number || !std::isfinite(*number) || std::abs(*number) > 9e18) {
      return wrong_type("%d", "the operand", "a number", value);
    }
    value = as_integer(value) ? Value(*as_integer(value)) : Value(static_cast<std::int64_t>(*number));
    type = 'd';
  } else if (std::string_view("xXoeEfFgGc").find(type) == std::string_view::npos) {
    return fault("%: expected a conversion, found '" + std::string(1, type) + "'");
  }
  if (type == 'd' && spec.precision >= 0) {  // a precision of an integer is its least number of digits
    auto digits = format_value(runtime_, FormatSpec{"0", '=', spec.sign, false, 0, static_cast<std::size_t>(spec.precision), -1, 'd'}, value);
    if (!digits) {
      return pass(digits);
    }
    value = Value::string(std::move(*digits));
    spec.precision = -1;
    type = 's';
  }
  spec.type = type == 'r' || type == 'a' ? 's' : type;
  auto text = format_value(runtime_, spec, value);
  return text ? append(std::move(*text)) : pass(text);
}

Outcome<Value> Formatter::braces(const Arguments& arguments) {
  while (true) {
    if (auto copied = copy_until("{}"); !copied) {
      return pass(copied);
    }
    if (at_end()) {
      return finish();
    }
    const char brace = format_[position_++];
    if (take(brace)) {
      out_ += brace;
      continue;
    }
    if (brace == '}') {
      return fault("format: expected '}}', found a single '}'");
    }
    std::string text;
    auto done = replacement(arguments, 0, text);
    if (done) {
      done = append(std::move(text));
    }
    if (!done) {
      return pass(done);
    }
  }
}

Outcome<Value> Formatter::field(std::string_view name, const Arguments& arguments) {
  const std::size_t end = std::min(name.find_first_of(".["), name.size());
  const std::string first(name.substr(0, end));
  const bool digits = first.find_first_not_of("0123456789") == std::string::npos;
  Outcome<Value> value = fault("format: expected an argument for '{" + std::string(name) + "}', found none");
  if (digits && first.size() < 10) {
    const std::size_t index = first.empty() ? used_++ : static_cast<std::size_t>(std::stoul(first));
    if (index < arguments.positional.size()) {
      value = arguments.positional[index];
    }
  } else {
    for (const auto& [key, argument] : arguments.keyword) {
      if (key == first) {
        value = argument;
      }
    }
  }
  std::size_t position = end;
  while (value && position < name.size()) {
    const bool bracket = name[position] == '[';
    const std::size_t stop = bracket ? name.find(']', position) : std::min(name.find_first_of(".[", position + 1), name.size());
    if (stop == std::string_view::npos) {
      return fault("format: expected ']' in '{" + std::string(name) + "}', found none");
    }
    const std::string part(name.substr(position + 1, stop - position - 1));
    const bool index = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    value = bracket ? get_item(runtime_, *value, index ? Value(std::int64_t{std::stoi(part)}) : Value::string(part))
                    : get_attribute(*value, part);
    position = bracket ? stop + 1 : stop;
  }
  return value;
}

Outcome<void> Formatter::replacement(const Arguments& arguments, int depth, std::string& out) {
  if (depth > 1) {
    return fault("format: expected at most one '{}' inside another, found more");
  }
  std::size_t end = position_;
  int open = 0;
  while (end < format_.size() && (open > 0 || format_[end] != '}')) {
    open += format_[end] == '{' ? 1 : format_[end] == '}' ? -1 : 0;
    ++end;
  }
  if (end == format_.size()) {
    return fault("format: expected '}', found the end of the format");
  }
  std::string_view inside = format_.substr(position_, end - position_);
  position_ = end + 1;
  const std::size_t colon = std::min(inside.find(':'), inside.size());
  const std::string_view spec_text = inside.substr(std::min(colon + 1, inside.size()));
  inside = inside.substr(0, colon);
  const std::size_t mark = inside.find('!');
  const std::string_view conversion = mark == std::string_view::npos ? "" : inside.substr(mark + 1);
  auto value = field(inside.substr(0, mark), arguments);
  if (!value) {
    return pass(value);
  }
  if (!conversion.empty()) {
    auto done = conversion == "s" ? append_text(runtime_, out, *value) : append_repr(runtime_, out, *value);
    if (!done) {
      return done;
    }
    value = Value::string(std::move(out));
    out.clear();
  }
  auto expanded = expand(spec_text, arguments, depth);
  auto spec = expanded ? parse_format_spec(*expanded) : Outcome<FormatSpec>(pass(expanded));
  auto text = spec ? format_value(runtime_, *spec, *value) : Outcome<std::string>(pass(spec));
  if (!text) {
    return pass(text);
  }
  out += *text;
  return {};
}

Outcome<std::string> Formatter::expand(std::string_view spec, const Arguments& arguments, int depth) {
  std::string expanded;
  const std::string_view outer_format = std::exchange(format_, spec);
  const std::size_t outer_position = std::exchange(position_, 0);
  Outcome<void> done;
  while (done && !at_end()) {
    const char c = format_[position_++];
    if (c == '{') {
      done = replacement(arguments, depth + 1, expanded);
    } else {
      expanded += c;
    }
  }
  format_ = outer_format;
  position_ = outer_position;
  return done ? Outcome<std::string>(std::move(expanded)) : pass(done);
}

}  // namespace

Outcome<Value> format_percent(Runtime& runtime, const String& format, const Value& operand) {
  return Formatter(runtime, format).percent(operand);
}

Outcome<Value> format_braces(Runtime& runtime, const String& format, const Arguments& arguments) {
  return Formatter(runtime, format).braces(arguments);
}

}  // namespace troupe::jinja
