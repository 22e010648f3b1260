#include <algorithm>
#include <utility>

#include "model/jinja/access.hpp"
#include "model/jinja/interpreter.hpp"
#include "model/jinja/operators.hpp"

/// The interpreter's part that calls functions and macros.
namespace troupe::jinja {

Outcome<Arguments> Interpreter::evaluate_arguments(const CallArguments& arguments) {
  auto positional = evaluate_all(arguments.positional);
  if (!positional) {
    return pass(positional);
  }
  Arguments result{std::move(*positional), {}};
  for (const auto& [name, expr] : arguments.keyword) {
    auto value = evaluate(*expr);
    if (!value) {
      return pass(value);
    }
    result.keyword.emplace_back(name, std::move(*value));
  }
  if (arguments.spread_positional != nullptr) {
    auto value = evaluate(*arguments.spread_positional);
    auto items = value ? iterate(runtime_, *value) : Outcome<List>(pass(value));
    auto paid = items ? runtime_.produce((*items)->items.size() * sizeof(Value)) : Outcome<void>(pass(items));
    if (!paid) {
      return pass(paid);
    }
    result.positional.insert(result.positional.end(), (*items)->items.begin(), (*items)->items.end());
  }
  if (arguments.spread_keyword != nullptr) {
    auto value = evaluate(*arguments.spread_keyword);
    if (!value) {
      return pass(value);
    }
    const Dict* const dict = value->get_if<Dict>();
    if (dict == nullptr) {
      return wrong_type("a call", "what follows **", "a dict", *value);
    }
    for (const auto& [key, entry] : (*dict)->entries()) {
      if (key.text() == nullptr) {
        return wrong_type("a call", "a key of what follows **", "a string", key);
      }
      result.keyword.emplace_back(*key.text(), entry);
    }
  }
  return result;
}

Outcome<Value> Interpreter::call(const Value& callee, Arguments arguments) {
  if (const auto* function = callee.get_if<FunctionRef>()) {
    return invoke(runtime_, *(*function)->builtin, (*function)->self, arguments);
  }
  if (const auto* const* macro = callee.get_if<const Macro*>()) {
    return call_macro(**macro, std::move(arguments));
  }
  if (const auto* undefined = callee.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  return fault("expected something to call, found " + std::string(callee.type_name()));
}

Outcome<Value> Interpreter::call_macro(const Macro& macro, Arguments arguments) {
  auto scope = std::make_shared<Scope>(Scope{macro.closure, {}});
  std::swap(scope_, scope);
  std::string outer = std::exchange(out_, {});
  auto bound = bind_parameters(*macro.definition, std::move(arguments), *scope_);
  auto flow = bound ? execute(macro.definition->body) : Outcome<Flow>(pass(bound));
  std::string text = std::exchange(out_, std::move(outer));
  std::swap(scope_, scope);
  return flow ? runtime_.string(std::move(text)) : pass(flow);
}

Outcome<void> Interpreter::bind_parameters(const MacroDefinition& macro, Arguments arguments, Scope& scope) {
  const std::string name = "macro '" + macro.name + "'";
  const std::size_t count = macro.parameters.size();
  if (arguments.positional.size() > count && !macro.uses_varargs) {
    return fault(name + ": expected at most " + std::to_string(count) + " argument(s), found " +
                 std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    const auto named = std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                                    [&](const auto& argument) { return argument.first == parameter.name; });
    Outcome<Value> value = Value::undefined("parameter '" + parameter.name + "' was not provided");
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (named != arguments.keyword.end()) {
      value = named->second;
      arguments.keyword.erase(named);
    } else if (parameter.fallback != nullptr) {
      value = evaluate(*parameter.fallback);
    }
    if (!value) {
      return pass(value);
    }
    scope.variables.insert_or_assign(parameter.symbol, std::move(*value));
  }
  return bind_rest(macro, std::move(arguments), scope);
}

/// Sets `caller`, `varargs` and `kwargs`, as far as the macro uses them; other arguments are a fault.
Outcome<void> Interpreter::bind_rest(const MacroDefinition& macro, Arguments arguments, Scope& scope) {
  auto& keyword = arguments.keyword;
  if (macro.uses_caller) {
    const auto caller = std::find_if(keyword.begin(), keyword.end(), [](const auto& a) { return a.first == "caller"; });
    if (caller != keyword.end()) {
      scope.variables.insert_or_assign(kCaller, std::move(caller->second));
      keyword.erase(caller);
    } else {
      scope.variables.insert_or_assign(kCaller, Value::undefined("the macro was not called with a call block"));
    }
  }
  if (!keyword.empty() && !macro.uses_kwargs) {
    return fault("macro '" + macro.name + "': unexpected keyword argument '" + keyword[0].first + "'");
  }
  if (macro.uses_kwargs) {
    DictObject::Entries entries;
    for (auto& [name, value] : keyword) {
      entries.emplace_back(Value::string(name), std::move(value));
    }
    auto dict = runtime_.dict(std::move(entries));
    if (!dict) {
      return pass(dict);
    }
    scope.variables.insert_or_assign(kKwargs, std::move(*dict));
  }
  if (macro.uses_varargs) {
    auto& positional = arguments.positional;
    const std::size_t taken = std::min(positional.size(), macro.parameters.size());
    auto rest = runtime_.tuple({positional.begin() + static_cast<std::ptrdiff_t>(taken), positional.end()});
    if (!rest) {
      return pass(rest);
    }
    scope.variables.insert_or_assign(kVarargs, std::move(*rest));
  }
  return {};
}

}  // namespace troupe::jinja
