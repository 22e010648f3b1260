#include <array>
#include <ctime>
#include <string>
#include <unordered_map>

#include "model/jinja/function.hpp"
#include "model/jinja/limits.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/value_text.hpp"

/// Functions that every template can call: jinja2's, and those that transformers adds for chat templates.
namespace troupe::jinja {
namespace {

Outcome<Value> range(Runtime& runtime, const Value& /*self*/, const Arguments& arguments) {
  if (!arguments.keyword.empty() || arguments.positional.empty() || arguments.positional.size() > 3) {
    return fault("range: expected 1 to 3 integers");
  }
  std::array<std::int64_t, 3> numbers{};
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    const auto number = as_integer(arguments.positional[i]);
    if (!number) {
      return wrong_type("range", "the arguments", "integers", arguments.positional[i]);
    }
    numbers[i] = *number;
  }
  const bool has_start = arguments.positional.size() > 1;
  const std::int64_t start = has_start ? numbers[0] : 0;
  const std::int64_t stop = has_start ? numbers[1] : numbers[0];
  const std::int64_t step = arguments.positional.size() == 3 ? numbers[2] : 1;
  if (step == 0) {
    return fault("range: expected a step other than 0");
  }
  std::vector<Value> values;
  for (std::int64_t value = start; step > 0 ? value < stop : value > stop;) {
    if (static_cast<std::int64_t>(values.size()) >= kMaxRange) {
      return fault("range: expected at most " + std::to_string(kMaxRange) + " values, found more");
    }
    values.emplace_back(value);
    if (__builtin_add_overflow(value, step, &value)) {
      break;
    }
  }
  return runtime.list(std::move(values));
}

/// The entries of a dict and of keyword arguments, as `dict(...)` and `namespace(...)` take them.
Outcome<DictObject::Entries> entries_of(std::string_view function, const Arguments& arguments) {
  DictObject::Entries entries;
  if (arguments.positional.size() > 1) {
    return fault(std::string(function) + ": expected at most one dict");
  }
  if (!arguments.positional.empty()) {
    const auto* const dict = arguments.positional[0].get_if<Dict>();
    if (dict == nullptr) {
      return wrong_type(function, "the argument", "a dict", arguments.positional[0]);
    }
    entries = (*dict)->entries();
  }
  for (const auto& [name, value] : arguments.keyword) {
    entries.emplace_back(Value::string(name), value);
  }
  return entries;
}

Outcome<Value> make_dict(Runtime& runtime, const Value& /*self*/, const Arguments& arguments) {
  auto entries = entries_of("dict", arguments);
  return entries ? runtime.dict(std::move(*entries)) : pass(entries);
}

Outcome<Value> make_namespace(Runtime& runtime, const Value& /*self*/, const Arguments& arguments) {
  auto entries = entries_of("namespace", arguments);
  if (!entries) {
    return pass(entries);
  }
  std::unordered_map<std::string, Value> attributes;
  for (auto& [key, value] : *entries) {
    if (key.text() == nullptr) {
      return wrong_type("namespace", "names", "strings", key);
    }
    attributes.insert_or_assign(*key.text(), std::move(value));
  }
  return runtime.make_namespace(std::move(attributes));
}

Outcome<Value> raise_exception(Runtime& runtime, const Value& /*self*/, const Arguments& arguments) {
  auto given = parameters<1>("raise_exception", arguments, {"message"});
  if (!given) {
    return pass(given);
  }
  auto message = (*given)[0] == nullptr ? Outcome<std::string>("") : text_of(runtime, *(*given)[0]);
  if (!message) {
    return pass(message);
  }
  return tl::unexpected<Fault>(Fault{std::move(*message), 0, /*raised=*/true});
}

Outcome<Value> strftime_now(Runtime& runtime, const Value& /*self*/, const Arguments& arguments) {
  auto given = parameters<1>("strftime_now", arguments, {"format"});
  if (!given) {
    return pass(given);
  }
  const std::string* const format = (*given)[0] == nullptr ? nullptr : (*given)[0]->text();
  if (format == nullptr) {
    return fault("strftime_now: expected a format string");
  }
  const std::time_t time = std::chrono::system_clock::to_time_t(runtime.now());
  std::tm local{};
  localtime_r(&time, &local);
  // A format may give nothing at all, which strftime does not tell from too little room: one more character does.
  const std::string padded = *format + "x";
  constexpr std::size_t kMaxResult = 4096;
  std::string text(kMaxResult, '\0');
  const std::size_t size = std::strftime(text.data(), text.size(), padded.c_str(), &local);
  if (size == 0) {
    return fault("strftime_now: expected a date of at most " + std::to_string(kMaxResult) + " bytes, found more");
  }
  text.resize(size - 1);
  return runtime.string(std::move(text));
}

constexpr auto kGlobals = std::to_array<Builtin>({{"dict", make_dict},
                                                  {"namespace", make_namespace},
                                                  {"raise_exception", raise_exception},
                                                  {"range", range},
                                                  {"strftime_now", strftime_now}});

}  // namespace

const Builtin* find_global(std::string_view name) { return find_builtin(kGlobals, name); }

}  // namespace troupe::jinja
