#include "model/jinja/function.hpp"

#include "model/jinja/limits.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"

namespace troupe::jinja {

Outcome<void> assign_parameters(std::string_view function, const Arguments& arguments, const std::string_view* names,
                                const Value** found, std::size_t count) {
  if (arguments.positional.size() > count) {
    return fault(std::string(function) + ": expected at most " + std::to_string(count) + " argument(s), found " +
                 std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    found[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keyword) {
    std::size_t i = 0;
    while (i < count && names[i] != name) {
      ++i;
    }
    if (i == count) {
      return fault(std::string(function) + ": unexpected keyword argument '" + name + "'");
    }
    if (found[i] != nullptr) {
      return fault(std::string(function) + ": multiple values for argument '" + name + "'");
    }
    found[i] = &value;
  }
  return {};
}

tl::unexpected<Fault> wrong_type(std::string_view function, std::string_view parameter, std::string_view expected,
                                 const Value& found) {
  if (const auto* undefined = found.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  return fault(std::string(function) + ": expected " + std::string(parameter) + " to be " + std::string(expected) +
               ", found " + std::string(found.type_name()));
}

Outcome<std::int64_t> integer_or(const Value* value, std::int64_t fallback, std::string_view function,
                                 std::string_view parameter) {
  if (value == nullptr) {
    return fallback;
  }
  if (const auto integer = as_integer(*value)) {
    return *integer;
  }
  return wrong_type(function, parameter, "an integer", *value);
}

Outcome<Value> invoke(Runtime& runtime, const Builtin& builtin, const Value& self, const Arguments& arguments) {
  // A function may look at all of a text, whatever it returns.
  const String* const string = self.get_if<String>();
  auto paid = runtime.work(1 + (string == nullptr ? 0 : string->text().size() / kBytesPerStep));
  return paid ? builtin.function(runtime, self, arguments) : pass(paid);
}

}  // namespace troupe::jinja
