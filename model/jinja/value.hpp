#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

/// The values that a template computes with: Python's, as far as chat templates need them. Lists and dicts never change
/// once made (jinja2's immutable sandbox forbids it too), so they share and hold no cycles. What can be part of a cycle
/// (namespaces, macros) belongs to the `Runtime` and is only pointed at.
namespace troupe::jinja {

class Value;
class LoopState;
struct Macro;
struct Namespace;
struct BoundFunction;

/// jinja2's default Undefined: prints as nothing, is false and empty, and is an error in any other use.
struct Undefined {
  /// What the error says.
  std::shared_ptr<const std::string> message;
};

struct None {};

/// An immutable string of valid UTF-8.
struct StringObject {
  explicit StringObject(std::string content);

  std::string text;
  /// Number of code points.
  std::size_t length;
};

struct String {
  std::shared_ptr<const StringObject> object;
  /// Marked as safe HTML (`|safe`): `+` escapes the other side, as in jinja2.
  bool markup = false;

  [[nodiscard]] const std::string& text() const { return object->text; }
};

/// What `ListObject` is to Python. A generator, which several filters give, can be iterated over and no more: it is
/// true even when it is empty, and has no length.
enum class ListKind : std::uint8_t { list, tuple, generator };

struct ListObject {
  std::vector<Value> items;
  ListKind kind = ListKind::list;
  /// Levels of containers, this one included.
  int depth = 1;
};

/// Entries in the order of insertion. Keys are scalars.
class DictObject {
 public:
  using Entries = std::vector<std::pair<Value, Value>>;

  /// A later entry replaces the value of an earlier one with an equal key, at the earlier one's place.
  explicit DictObject(Entries entries);

  [[nodiscard]] const Entries& entries() const { return entries_; }
  /// The value of `key`, or nullptr.
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] int depth() const { return depth_; }

 private:
  [[nodiscard]] std::optional<std::size_t> position_of(const Value& key) const;
  [[nodiscard]] std::optional<std::size_t> position_of(std::string_view key) const;

  Entries entries_;
  /// From `dict_key` to the position; empty for a small dict.
  std::unordered_map<std::string, std::size_t> index_;
  int depth_ = 1;
};

using List = std::shared_ptr<const ListObject>;
using Dict = std::shared_ptr<const DictObject>;
using FunctionRef = std::shared_ptr<const BoundFunction>;
using Loop = std::shared_ptr<LoopState>;

template <class T, class Variant>
struct IsOneOf;
template <class T, class... Alternatives>
struct IsOneOf<T, std::variant<Alternatives...>> : std::disjunction<std::is_same<T, Alternatives>...> {};

class Value {
 public:
  using Storage = std::variant<Undefined, None, bool, std::int64_t, double, String, List, Dict, FunctionRef, Namespace*,
                               const Macro*, Loop>;

  Value() = default;
  // Implicit from every alternative: filters and methods return plain values.
  template <class T>
  requires IsOneOf<T, Storage>::value Value(T alternative)  // NOLINT(*-explicit-*)
      : storage_(std::in_place_type<T>, std::move(alternative)) {}

  /// A string that the budget of no render pays for.
  [[nodiscard]] static Value string(std::string text, bool markup = false);
  [[nodiscard]] static Value undefined(std::string message);

  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(storage_);
  }
  [[nodiscard]] const Storage& storage() const { return storage_; }

  /// The text of a string, nullptr for other kinds.
  [[nodiscard]] const std::string* text() const;
  /// Python's truth value.
  [[nodiscard]] bool truthy() const;
  /// Name of the Python type, e.g. "dict".
  [[nodiscard]] std::string_view type_name() const;
  /// Levels of containers: 0 for a scalar.
  [[nodiscard]] int depth() const;

 private:
  Storage storage_;
};

struct Namespace {
  std::unordered_map<std::string, Value> attributes;
};

/// Name under which a dict files a key, equal for keys that Python holds equal (1, 1.0 and true); empty for values that
/// cannot be keys.
[[nodiscard]] std::string dict_key(const Value& key);

}  // namespace troupe::jinja
