#include "model/kv_storage.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace troupe {

KvStorage::KvStorage(const CacheShape& shape, std::int64_t num_kv_heads, std::int64_t head_dim, at::ScalarType type) {
  const auto layers = static_cast<std::int64_t>(shape.groups.front().layers.size());
  const std::int64_t num_blocks = std::int64_t{shape.num_blocks} + 2;
  const std::array<std::int64_t, 6> sizes = {layers, 2, num_blocks, shape.block_size, num_kv_heads, head_dim};
  tensor_ =
      shape.poison_unwritten ? at::full(sizes, std::numeric_limits<double>::quiet_NaN(), type) : at::empty(sizes, type);
  block_bytes_ = shape.block_size * num_kv_heads * head_dim * static_cast<std::int64_t>(tensor_.element_size());
  plane_bytes_ = num_blocks * block_bytes_;
  num_planes_ = 2 * layers;
}

void KvStorage::copy_blocks(std::span<const BlockCopy> copies) {
  if (copies.empty()) {
    return;
  }
#pragma omp parallel for
  for (std::int64_t index = 0; index < num_planes_; ++index) {
    auto* const blocks = static_cast<std::byte*>(plane(index));
    for (const BlockCopy& copy : copies) {
      std::memcpy(blocks + copy.destination * block_bytes_, blocks + copy.source * block_bytes_,
                  static_cast<std::size_t>(block_bytes_));
    }
  }
}

void* KvStorage::plane(std::int64_t index) const {
  return static_cast<std::byte*>(tensor_.data_ptr()) + index * plane_bytes_;
}

}  // namespace troupe
