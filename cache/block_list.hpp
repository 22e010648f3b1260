#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/types.hpp"

namespace troupe {

/// A doubly linked list of block ids, each at most once. Its links are two arrays indexed by id, so every operation is
/// constant-time and none allocates after construction.
class BlockList {
 public:
  explicit BlockList(std::int32_t num_blocks)
      : next_(static_cast<std::size_t>(num_blocks), kNone), previous_(static_cast<std::size_t>(num_blocks), kNone) {}

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::int32_t size() const noexcept { return size_; }
  /// First and last id; -1 if the list is empty.
  [[nodiscard]] BlockId front() const noexcept { return head_; }
  [[nodiscard]] BlockId back() const noexcept { return tail_; }

  /// Appends an id that is not in the list.
  void push_back(BlockId id) noexcept {
    previous_[index(id)] = tail_;
    next_[index(id)] = kNone;
    (tail_ == kNone ? head_ : next_[index(tail_)]) = id;
    tail_ = id;
    ++size_;
  }

  /// Removes an id that is in the list.
  void erase(BlockId id) noexcept {
    const BlockId before = previous_[index(id)];
    const BlockId after = next_[index(id)];
    (before == kNone ? head_ : next_[index(before)]) = after;
    (after == kNone ? tail_ : previous_[index(after)]) = before;
    --size_;
  }

  /// The ids in order. Stops after as many as there are blocks, so that a broken list is reported instead of followed.
  [[nodiscard]] std::vector<BlockId> to_vector() const {
    std::vector<BlockId> ids;
    ids.reserve(static_cast<std::size_t>(size_));
    for (BlockId id = head_; id != kNone && ids.size() < next_.size(); id = next_[index(id)]) {
      ids.push_back(id);
    }
    return ids;
  }

 private:
  static constexpr BlockId kNone = -1;
  static constexpr std::size_t index(BlockId id) noexcept { return static_cast<std::size_t>(id); }

  std::vector<BlockId> next_;
  std::vector<BlockId> previous_;
  BlockId head_ = kNone;
  BlockId tail_ = kNone;
  std::int32_t size_ = 0;
};

}  // namespace troupe
