#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

/// A running `for` loop: the variable `loop` of its body.
class LoopState {
 public:
  /// Whether an item passes the loop's `if`. It runs no earlier than the item is asked for, as what the body sets may
  /// change the answer.
  using Accept = std::function<Outcome<bool>(const Value& item)>;

  /// @param accept May be empty: every item passes.
  LoopState(List source, Accept accept) : source_(std::move(source)), accept_(std::move(accept)) {}

  /// Moves to the next item; the outcome is nullptr after the last one.
  [[nodiscard]] Outcome<const Value*> advance();
  /// Ends the loop: drops its filter, which refers to the scope that may hold the loop.
  void finish();

  /// `loop.name`, or nullopt for an unknown name.
  [[nodiscard]] Outcome<std::optional<Value>> attribute(std::string_view name);
  /// Number of the current item, from 0.
  [[nodiscard]] std::size_t index() const { return next_ - 1; }

 private:
  /// The item at `position` of those that pass, or nullptr.
  [[nodiscard]] Outcome<const Value*> item(std::size_t position);
  [[nodiscard]] Outcome<std::size_t> length();

  List source_;
  Accept accept_;
  /// Positions in the source of the items that have passed, if there is a filter.
  std::vector<std::size_t> passed_;
  std::size_t examined_ = 0;
  std::size_t next_ = 0;
};

}  // namespace troupe::jinja
