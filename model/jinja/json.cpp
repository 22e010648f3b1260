#include "model/jinja/json.hpp"

#include <cmath>
#include <limits>

#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/sorting.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

using Json = nlohmann::ordered_json;

Outcome<Value> string_from_json(const std::string& text) {
  const std::size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string::npos) {
    return fault("expected a string of valid UTF-8, found an invalid byte at offset " + std::to_string(invalid));
  }
  return Value::string(text);
}

Outcome<Value> convert(const Json& json, int depth) {
  if (depth > kMaxValueDepth) {
    return fault("expected at most " + std::to_string(kMaxValueDepth) + " levels of nested values, found more");
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      const bool fits = number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      return fits ? Value(static_cast<std::int64_t>(number)) : Value(static_cast<double>(number));
    }
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return string_from_json(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      int levels = 1;
      for (const Json& element : json) {
        auto item = convert(element, depth + 1);
        if (!item) {
          return item;
        }
        levels = std::max(levels, 1 + item->depth());
        items.push_back(std::move(*item));
      }
      return Value(List(std::make_shared<const ListObject>(ListObject{std::move(items), ListKind::list, levels})));
    }
    case Json::value_t::object: {
      DictObject::Entries entries;
      entries.reserve(json.size());
      for (const auto& element : json.items()) {
        auto key = string_from_json(element.key());
        auto value = key ? convert(element.value(), depth + 1) : key;
        if (!value) {
          return value;
        }
        entries.emplace_back(std::move(*key), std::move(*value));
      }
      return Value(Dict(std::make_shared<const DictObject>(std::move(entries))));
    }
    default:
      return Value(None{});
  }
}

void append_unicode_escape(std::string& out, char32_t unit) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) {
    out += kDigits[(unit >> shift) & 0xFU];
  }
}

void append_json_string(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  for (std::size_t position = 0; position < text.size();) {
    const char32_t c = next_code_point(text, position);
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    static constexpr std::string_view kLetters = "\"\\nrtbf";
    const std::size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      out += '\\';
      out += kLetters[escape];
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
      append_unicode_escape(out, c);
    } else if (ensure_ascii && c >= 0x10000) {
      append_unicode_escape(out, 0xD800 + ((c - 0x10000) >> 10U));
      append_unicode_escape(out, 0xDC00 + ((c - 0x10000) & 0x3FFU));
    } else {
      append_utf8(out, c);
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Outcome<void> write(const Value& value) {
    auto ok = runtime_.work();
    if (ok) {
      ok = Runtime::check_text_size(out_.size());
    }
    if (!ok) {
      return ok;
    }
    if (const auto* list = value.get_if<List>(); list != nullptr && (*list)->kind != ListKind::generator) {
      return write_list(**list);
    }
    if (const auto* dict = value.get_if<Dict>()) {
      return write_dict(**dict);
    }
    if (const auto* text = value.text()) {
      append_json_string(out_, *text, style_.ensure_ascii);
      return {};
    }
    return write_scalar(value, out_);
  }

  std::string take() { return std::move(out_); }

 private:
  Outcome<void> write_scalar(const Value& value, std::string& out) {
    if (value.is<None>()) {
      out += "null";
    } else if (const auto* flag = value.get_if<bool>()) {
      out += *flag ? "true" : "false";
    } else if (const auto* number = value.get_if<double>(); number != nullptr && !std::isfinite(*number)) {
      out += std::isnan(*number) ? "NaN" : *number < 0 ? "-Infinity" : "Infinity";
    } else if (value.is<double>() || value.is<std::int64_t>()) {
      return append_text(runtime_, out, value);
    } else {
      return fault("tojson: expected a value that JSON can hold, found " + std::string(value.type_name()));
    }
    return {};
  }

  Outcome<void> write_key(const Value& key) {
    if (const auto* text = key.text()) {
      append_json_string(out_, *text, style_.ensure_ascii);
      return {};
    }
    out_ += '"';
    auto done = write_scalar(key, out_);
    out_ += '"';
    return done;
  }

  void new_line() {
    if (style_.indent) {
      out_ += '\n';
      for (int i = 0; i < level_; ++i) {
        out_ += *style_.indent;
      }
    }
  }

  Outcome<void> write_list(const ListObject& list) {
    if (list.items.empty()) {
      out_ += "[]";
      return {};
    }
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      out_ += i == 0 ? "" : style_.item_separator;
      new_line();
      if (auto done = write(list.items[i]); !done) {
        return done;
      }
    }
    --level_;
    new_line();
    out_ += ']';
    return {};
  }

  Outcome<void> write_dict(const DictObject& dict) {
    if (dict.entries().empty()) {
      out_ += "{}";
      return {};
    }
    std::vector<std::size_t> order(dict.entries().size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    if (style_.sort_keys) {
      std::vector<Value> keys;
      for (const auto& entry : dict.entries()) {
        keys.push_back(entry.first);
      }
      auto sorted = sorted_order(runtime_, keys, false);
      if (!sorted) {
        return pass(sorted);
      }
      order = std::move(*sorted);
    }
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      out_ += i == 0 ? "" : style_.item_separator;
      new_line();
      const auto& [key, value] = dict.entries()[order[i]];
      auto done = write_key(key);
      if (done) {
        out_ += style_.key_separator;
        done = write(value);
      }
      if (!done) {
        return done;
      }
    }
    --level_;
    new_line();
    out_ += '}';
    return {};
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Outcome<Value> value_from_json(const Json& json) { return convert(json, 0); }

Outcome<std::string> json_text(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  if (auto done = writer.write(value); !done) {
    return pass(done);
  }
  return writer.take();
}

}  // namespace troupe::jinja
