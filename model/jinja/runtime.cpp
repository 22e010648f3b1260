#include "model/jinja/runtime.hpp"

#include <algorithm>

namespace troupe::jinja {
namespace {

/// Bytes that count for a namespace, macro or container besides its elements.
constexpr std::uint64_t kObjectBytes = 128;

}  // namespace

const Value* Scope::find(Symbol symbol) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    const auto found = scope->variables.find(symbol);
    if (found != scope->variables.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

Outcome<void> Runtime::work(std::uint64_t units) {
  if (units > work_left_) {
    work_left_ = 0;
    return fault("expected at most " + std::to_string(kMaxWork) + " steps, found a template that needs more");
  }
  work_left_ -= units;
  return {};
}

Outcome<void> Runtime::check_text_size(std::uint64_t bytes) {
  if (bytes > kMaxTextBytes) {
    return fault("expected a string of at most " + std::to_string(kMaxTextBytes) + " bytes, found " +
                 std::to_string(bytes));
  }
  return {};
}

Outcome<void> Runtime::produce(std::uint64_t bytes) {
  if (bytes > bytes_left_) {
    bytes_left_ = 0;
    return fault("expected at most " + std::to_string(kMaxProducedBytes) +
                 " bytes of intermediate values, found a template that needs more");
  }
  bytes_left_ -= bytes;
  return {};
}

Outcome<Value> Runtime::string(std::string text, bool markup) {
  auto paid = check_text_size(text.size());
  if (paid) {
    paid = produce(text.size());
  }
  if (!paid) {
    return pass(paid);
  }
  return Value::string(std::move(text), markup);
}

Outcome<Value> Runtime::sequence(std::vector<Value> items, ListKind kind) {
  if (auto paid = produce(kObjectBytes + items.size() * sizeof(Value)); !paid) {
    return pass(paid);
  }
  int depth = 1;
  for (const Value& item : items) {
    depth = std::max(depth, 1 + item.depth());
  }
  if (depth > kMaxValueDepth) {
    return fault("expected at most " + std::to_string(kMaxValueDepth) + " levels of nested values, found more");
  }
  return Value(List(std::make_shared<const ListObject>(ListObject{std::move(items), kind, depth})));
}

Outcome<Value> Runtime::list(std::vector<Value> items) { return sequence(std::move(items), ListKind::list); }
Outcome<Value> Runtime::tuple(std::vector<Value> items) { return sequence(std::move(items), ListKind::tuple); }

Outcome<Value> Runtime::dict(DictObject::Entries entries) {
  if (auto paid = produce(kObjectBytes + 2 * entries.size() * sizeof(Value)); !paid) {
    return pass(paid);
  }
  for (const auto& [key, value] : entries) {
    if (dict_key(key).empty()) {
      return fault("expected a dict key to be a scalar, found " + std::string(key.type_name()));
    }
  }
  auto object = std::make_shared<const DictObject>(std::move(entries));
  if (object->depth() > kMaxValueDepth) {
    return fault("expected at most " + std::to_string(kMaxValueDepth) + " levels of nested values, found more");
  }
  return Value(Dict(std::move(object)));
}

Outcome<Value> Runtime::make_namespace(std::unordered_map<std::string, Value> attributes) {
  if (auto paid = produce(kObjectBytes); !paid) {
    return pass(paid);
  }
  namespaces_.push_back(std::make_unique<Namespace>(Namespace{std::move(attributes)}));
  return Value(namespaces_.back().get());
}

Outcome<Value> Runtime::macro(const MacroDefinition& definition, std::shared_ptr<Scope> closure) {
  if (auto paid = produce(kObjectBytes); !paid) {
    return pass(paid);
  }
  macros_.push_back(std::make_unique<const Macro>(Macro{&definition, std::move(closure)}));
  return Value(macros_.back().get());
}

}  // namespace troupe::jinja
