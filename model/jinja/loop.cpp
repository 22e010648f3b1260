#include "model/jinja/loop.hpp"

#include <limits>

namespace troupe::jinja {

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
  if (accept_) {
    accept_ = [](const Value&) -> Outcome<bool> { return fault("expected a running loop, found one that has ended"); };
  }
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

}  // namespace troupe::jinja
