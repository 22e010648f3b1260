#include "model/jinja/loop.hpp"

#include <limits>

#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"

namespace troupe::jinja {

LoopState::LoopState(const For& statement, List source, Accept accept, std::int64_t depth)
    : statement_(&statement), source_(std::move(source)), accept_(std::move(accept)), depth_(depth) {}

Outcome<const Value*> LoopState::item(std::size_t position) {
  if (!accept_) {
    return position < source_->items.size() ? &source_->items[position] : nullptr;
  }
  while (passed_.size() <= position && examined_ < source_->items.size()) {
    auto accepted = accept_(source_->items[examined_]);
    if (!accepted) {
      return pass(accepted);
    }
    if (*accepted) {
      passed_.push_back(examined_);
    }
    ++examined_;
  }
  return position < passed_.size() ? &source_->items[passed_[position]] : nullptr;
}

Outcome<std::size_t> LoopState::length() {
  if (!accept_) {
    return source_->items.size();
  }
  // No list has an item of that number: the search passes all of them.
  auto last = item(std::numeric_limits<std::size_t>::max());
  return last ? Outcome<std::size_t>(passed_.size()) : pass(last);
}

Outcome<const Value*> LoopState::advance() {
  auto found = item(next_);
  if (found && *found != nullptr) {
    ++next_;
  }
  return found;
}

void LoopState::finish() {
  last_changed_.reset();
  accept_ = [](const Value&) -> Outcome<bool> { return fault("the loop has ended"); };
}

Outcome<std::optional<Value>> LoopState::attribute(std::string_view name) {
  const auto number = [](std::size_t value) { return std::optional<Value>(static_cast<std::int64_t>(value)); };
  if (name == "index") {
    return number(next_);
  }
  if (name == "index0") {
    return number(index());
  }
  if (name == "first") {
    return Value(next_ == 1);
  }
  if (name == "depth") {
    return Value(depth_ + 1);
  }
  if (name == "depth0") {
    return Value(depth_);
  }
  if (name == "last" || name == "nextitem") {
    auto next = item(next_);
    if (!next) {
      return pass(next);
    }
    if (name == "last") {
      return Value(*next == nullptr);
    }
    return *next == nullptr ? Value::undefined("there is no next item") : **next;
  }
  if (name == "previtem") {
    if (next_ < 2) {
      return Value::undefined("there is no previous item");
    }
    auto previous = item(next_ - 2);
    return previous ? Outcome<std::optional<Value>>(**previous) : pass(previous);
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    auto count = length();
    if (!count) {
      return pass(count);
    }
    const std::size_t done = name == "length" ? 0 : name == "revindex" ? index() : next_;
    return number(*count - done);
  }
  return std::nullopt;
}

Outcome<Value> LoopState::changed(Runtime& runtime, const std::vector<Value>& values) {
  bool same = last_changed_.has_value() && last_changed_->size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i) {
    auto equal_value = equal(runtime, (*last_changed_)[i], values[i]);
    if (!equal_value) {
      return pass(equal_value);
    }
    same = *equal_value;
  }
  if (!same) {
    last_changed_ = values;
  }
  return Value(!same);
}

}  // namespace troupe::jinja
