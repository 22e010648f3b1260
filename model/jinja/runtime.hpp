#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"
#include "model/jinja/limits.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

/// Names that are set while a part of a template runs.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::unordered_map<Symbol, Value> variables;

  /// The value here or in the nearest enclosing scope that has it, or nullptr.
  [[nodiscard]] const Value* find(Symbol symbol) const;
};

/// A macro together with the scope that its definition ran in.
struct Macro {
  const MacroDefinition* definition = nullptr;
  std::shared_ptr<Scope> closure;
};

/// What one render may still spend, and what it owns.
class Runtime {
 public:
  explicit Runtime(std::chrono::system_clock::time_point now) : now_(now) {}

  /// Takes `units` of the render's work; a fault once nothing is left.
  [[nodiscard]] Outcome<void> work(std::uint64_t units = 1);
  /// Whether a string of `bytes` may be built; the fault names the limit.
  [[nodiscard]] static Outcome<void> check_text_size(std::uint64_t bytes);

  // Values made here are paid for; each is a fault when a limit of limits.hpp is reached.
  [[nodiscard]] Outcome<Value> string(std::string text, bool markup = false);
  [[nodiscard]] Outcome<Value> list(std::vector<Value> items);
  [[nodiscard]] Outcome<Value> tuple(std::vector<Value> items);
  [[nodiscard]] Outcome<Value> sequence(std::vector<Value> items, ListKind kind);
  [[nodiscard]] Outcome<Value> dict(DictObject::Entries entries);
  [[nodiscard]] Outcome<Value> make_namespace(std::unordered_map<std::string, Value> attributes);
  [[nodiscard]] Outcome<Value> macro(const MacroDefinition& definition, std::shared_ptr<Scope> closure);

  /// Pays for `bytes` of new data.
  [[nodiscard]] Outcome<void> produce(std::uint64_t bytes);

  /// What strftime_now shows.
  [[nodiscard]] std::chrono::system_clock::time_point now() const { return now_; }

 private:
  std::chrono::system_clock::time_point now_;
  std::uint64_t work_left_ = kMaxWork;
  std::uint64_t bytes_left_ = kMaxProducedBytes;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<const Macro>> macros_;
};

}  // namespace troupe::jinja
