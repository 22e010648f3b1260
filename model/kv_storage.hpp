#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "cache/step_executor.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Keys and values of the whole cache in one tensor, (layers of a group, 2, num_blocks + 2, block_size, num_kv_heads,
/// head_dim). All groups share it: a block belongs to one group at a time, and a group's layer is found by its place in
/// the group. The two spare blocks are for padding, which executors with fixed shapes need.
class KvStorage {
 public:
  KvStorage() = default;
  /// Throws what LibTorch throws (no memory).
  KvStorage(const CacheShape& shape, std::int64_t num_kv_heads, std::int64_t head_dim, at::ScalarType type);

  /// Copies whole blocks, one after the other, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  /// Keys or values of a layer: block 0, slot 0, head 0, element 0.
  template <class T>
  [[nodiscard]] T* keys(std::int64_t layer_in_group) const {
    return static_cast<T*>(plane(2 * layer_in_group));
  }
  template <class T>
  [[nodiscard]] T* values(std::int64_t layer_in_group) const {
    return static_cast<T*>(plane(2 * layer_in_group + 1));
  }

 private:
  [[nodiscard]] void* plane(std::int64_t index) const;

  at::Tensor tensor_;
  std::int64_t block_bytes_ = 0;
  std::int64_t plane_bytes_ = 0;
  std::int64_t num_planes_ = 0;
};

}  // namespace troupe
