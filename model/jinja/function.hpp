#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

/// Everything written in C++ that a template can call: filters, tests, methods and global functions, all of one shape.
namespace troupe::jinja {

class Runtime;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

/// @param self What a filter or test is applied to, or a method is bound to; None for a global function.
using Function = Outcome<Value> (*)(Runtime& runtime, const Value& self, const Arguments& arguments);

struct Builtin {
  std::string_view name;
  Function function;
};

/// A function as a value: a method of `self`, or a global function.
struct BoundFunction {
  const Builtin* builtin = nullptr;
  Value self;
};

/// The table's entry of that name, or nullptr.
template <std::size_t N>
[[nodiscard]] const Builtin* find_builtin(const std::array<Builtin, N>& table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) {
      return &builtin;
    }
  }
  return nullptr;
}

/// Assigns arguments to the parameters `names`, as Python does; nullptr where none was given.
/// @param count How many of `found` and `names` there are.
[[nodiscard]] Outcome<void> assign_parameters(std::string_view function, const Arguments& arguments,
                                              const std::string_view* names, const Value** found, std::size_t count);

template <std::size_t N>
[[nodiscard]] Outcome<std::array<const Value*, N>> parameters(std::string_view function, const Arguments& arguments,
                                                              const std::array<std::string_view, N>& names) {
  std::array<const Value*, N> found{};
  auto done = assign_parameters(function, arguments, names.data(), found.data(), N);
  if (!done) {
    return pass(done);
  }
  return found;
}

/// A fault for a parameter (or the filtered value) of a wrong type: "join: separator must be a string, not int".
[[nodiscard]] tl::unexpected<Fault> wrong_type(std::string_view function, std::string_view parameter,
                                               std::string_view expected, const Value& found);

/// The integer in `value`, or `fallback` where it is nullptr.
[[nodiscard]] Outcome<std::int64_t> integer_or(const Value* value, std::int64_t fallback, std::string_view function,
                                               std::string_view parameter);

/// Runs a builtin on `self`, which costs work according to the size of `self`.
[[nodiscard]] Outcome<Value> invoke(Runtime& runtime, const Builtin& builtin, const Value& self,
                                    const Arguments& arguments);

[[nodiscard]] const Builtin* find_filter(std::string_view name);
[[nodiscard]] const Builtin* find_test(std::string_view name);
[[nodiscard]] const Builtin* find_global(std::string_view name);
/// The method of a string, dict, list or loop.
[[nodiscard]] const Builtin* find_method(const Value& self, std::string_view name);

}  // namespace troupe::jinja
