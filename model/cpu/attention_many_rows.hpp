#pragma once

/// The attention loop for tiles of many query rows (prefill).

#include <cstdint>

#include "model/cpu/kernels.hpp"
#include "model/cpu/vector.hpp"

namespace troupe::cpu::TROUPE_ISA {

/// Keys of one round of the online softmax.
inline constexpr std::int32_t kKeysAtOnce = 32;

template <class T>
const T* query_of(const AttentionTile<T>& tile, std::int32_t row) {
  return tile.queries + (row / tile.group) * tile.query_stride +
         static_cast<std::int64_t>(row % tile.group) * tile.head_dim;
}

/// Writes where the keys [begin, begin + count) lie, in elements from block 0.
template <class T>
void find_slots(const AttentionTile<T>& tile, std::int32_t begin, std::int32_t count, std::int64_t* slots) {
  std::int32_t block = begin / tile.block_size;
  std::int32_t offset = begin % tile.block_size;
  for (std::int32_t key = 0; key < count; ++key) {
    slots[key] = (static_cast<std::int64_t>(tile.block_table[block]) * tile.block_size + offset) * tile.slot_stride;
    if (++offset == tile.block_size) {
      offset = 0;
      ++block;
    }
  }
}

/// Vectors along the query rows: the queries are transposed once, keys and values are broadcast element by element, and
/// both products run like those of a matrix multiplication, 4 keys (or dimensions) by 2 vectors of rows at a time.
template <class T>
class ManyRows {
 public:
  ManyRows(const AttentionTile<T>& tile, const AttentionPartial& out, float* scratch)
      : tile_(tile), out_(out), rows_(tile.num_tokens * tile.group) {
    stride_ = (rows_ + kLanes - 1) / kLanes * kLanes;
    const std::int64_t head_dim = tile.head_dim;
    queries_ = scratch;
    sums_ = queries_ + head_dim * stride_;
    scores_ = sums_ + head_dim * stride_;
    converted_keys_ = scores_ + static_cast<std::int64_t>(kKeysAtOnce) * stride_;
    converted_values_ = converted_keys_ + kKeysAtOnce * head_dim;
    for (std::int64_t i = 0; i < head_dim * stride_; ++i) {
      queries_[i] = 0.0F;
      sums_[i] = 0.0F;
    }
    for (std::int32_t row = 0; row < stride_; ++row) {
      maximum_[row] = -kInfinity;
      sum_[row] = 0.0F;
      visible_[row] = row < rows_ ? tile.visible_keys + row / tile.group : 0;
    }
    for (std::int32_t row = 0; row < rows_; ++row) {
      for (std::int32_t d = 0; d < tile.head_dim; ++d) {
        queries_[d * stride_ + row] = load_one(query_of(tile, row) + d) * tile.scale;
      }
    }
  }

  void run() {
    for (std::int32_t begin = tile_.key_begin; begin < tile_.key_end; begin += kKeysAtOnce) {
      const std::int32_t count = begin + kKeysAtOnce < tile_.key_end ? kKeysAtOnce : tile_.key_end - begin;
      std::int64_t slots[kKeysAtOnce];
      find_slots(tile_, begin, count, slots);
      const float* keys[kKeysAtOnce];
      const float* values[kKeysAtOnce];
      for (std::int32_t key = 0; key < count; ++key) {
        keys[key] = as_floats(tile_.keys + slots[key], converted_keys_ + key * tile_.head_dim);
        values[key] = as_floats(tile_.values + slots[key], converted_values_ + key * tile_.head_dim);
      }
      for_row_vectors([&]<int Vectors>(std::int32_t row) {
        score<Vectors>(row, keys, count);
        for (int v = 0; v < Vectors; ++v) {
          update_softmax(row + v * kLanes, begin, count);
        }
        accumulate<Vectors>(row, values, count);
      });
    }
    write_result();
  }

 private:
  const float* as_floats(const float* from, float* /*to*/) { return from; }
  const float* as_floats(const BFloat16* from, float* to) {
    std::int32_t d = 0;
    for (; d + kLanes <= tile_.head_dim; d += kLanes) {
      store(to + d, load(from + d));
    }
    for (; d < tile_.head_dim; ++d) {
      to[d] = load_one(from + d);
    }
    return to;
  }

  template <class Function>
  void for_row_vectors(Function function) {
    std::int32_t row = 0;
    for (; row + 2 * kLanes <= stride_; row += 2 * kLanes) {
      function.template operator()<2>(row);
    }
    if (row < stride_) {
      function.template operator()<1>(row);
    }
  }

  template <int Vectors>
  void score(std::int32_t row, const float* const* keys, std::int32_t count) {
    std::int32_t key = 0;
    for (; key + 4 <= count; key += 4) {
      score_keys<Vectors, 4>(row, keys + key, scores_ + key * stride_ + row);
    }
    for (; key < count; ++key) {
      score_keys<Vectors, 1>(row, keys + key, scores_ + key * stride_ + row);
    }
  }

  template <int Vectors, int Keys>
  void score_keys(std::int32_t row, const float* const* keys, float* scores) {
    Floats products[Keys][Vectors] = {};
    for (std::int32_t d = 0; d < tile_.head_dim; ++d) {
      const float* queries = queries_ + d * stride_ + row;
      for (int key = 0; key < Keys; ++key) {
        const float k = keys[key][d];
        for (int v = 0; v < Vectors; ++v) {
          products[key][v] += k * load(queries + v * kLanes);
        }
      }
    }
    for (int key = 0; key < Keys; ++key) {
      for (int v = 0; v < Vectors; ++v) {
        store(scores + key * stride_ + v * kLanes, products[key][v]);
      }
    }
  }

  /// Turns scores into weights relative to the largest so far, and rescales what a vector of rows has summed up.
  void update_softmax(std::int32_t row, std::int32_t begin, std::int32_t count) {
    Ints visible;
    __builtin_memcpy(&visible, visible_ + row, sizeof(visible));
    Floats largest = load(maximum_ + row);
    const Floats before = largest;
    for (std::int32_t key = 0; key < count; ++key) {
      float* scores = scores_ + key * stride_ + row;
      const Floats masked = visible > begin + key ? load(scores) : broadcast(-kInfinity);
      store(scores, masked);
      largest = max(masked, largest);
    }
    // A row that has seen no key yet: subtract 0, not -inf, so that its weights are 0 and not NaN.
    const Floats reference = largest == broadcast(-kInfinity) ? broadcast(0.0F) : largest;
    Floats sum{};
    for (std::int32_t key = 0; key < count; ++key) {
      float* scores = scores_ + key * stride_ + row;
      const Floats weight = exp(load(scores) - reference);
      store(scores, weight);
      sum += weight;
    }
    const Floats correction = exp(before - reference);
    store(sum_ + row, load(sum_ + row) * correction + sum);
    store(maximum_ + row, largest);
    for (std::int32_t d = 0; d < tile_.head_dim; ++d) {
      float* sums = sums_ + d * stride_ + row;
      store(sums, load(sums) * correction);
    }
  }

  template <int Vectors>
  void accumulate(std::int32_t row, const float* const* values, std::int32_t count) {
    std::int32_t d = 0;
    for (; d + 4 <= tile_.head_dim; d += 4) {
      accumulate_dimensions<Vectors, 4>(row, d, values, count);
    }
    for (; d < tile_.head_dim; ++d) {
      accumulate_dimensions<Vectors, 1>(row, d, values, count);
    }
  }

  template <int Vectors, int Dimensions>
  void accumulate_dimensions(std::int32_t row, std::int32_t d, const float* const* values, std::int32_t count) {
    Floats sums[Dimensions][Vectors];
    for (int i = 0; i < Dimensions; ++i) {
      for (int v = 0; v < Vectors; ++v) {
        sums[i][v] = load(sums_ + (d + i) * stride_ + row + v * kLanes);
      }
    }
    for (std::int32_t key = 0; key < count; ++key) {
      const float* weights = scores_ + key * stride_ + row;
      for (int i = 0; i < Dimensions; ++i) {
        const float value = values[key][d + i];
        for (int v = 0; v < Vectors; ++v) {
          sums[i][v] += value * load(weights + v * kLanes);
        }
      }
    }
    for (int i = 0; i < Dimensions; ++i) {
      for (int v = 0; v < Vectors; ++v) {
        store(sums_ + (d + i) * stride_ + row + v * kLanes, sums[i][v]);
      }
    }
  }

  void write_result() {
    for (std::int32_t row = 0; row < rows_; ++row) {
      out_.maximum[row] = maximum_[row];
      out_.sum[row] = sum_[row];
      for (std::int32_t d = 0; d < tile_.head_dim; ++d) {
        out_.values[row * tile_.head_dim + d] = sums_[d * stride_ + row];
      }
    }
  }

  const AttentionTile<T>& tile_;
  const AttentionPartial& out_;
  std::int32_t rows_;
  /// Rows rounded up to whole vectors.
  std::int32_t stride_;
  /// (head_dim, stride), scaled
  float* queries_;
  /// (head_dim, stride)
  float* sums_;
  /// (kKeysAtOnce, stride)
  float* scores_;
  /// (kKeysAtOnce, head_dim) each; used only if T is not float
  float* converted_keys_;
  float* converted_values_;
  float maximum_[kMaxTileRows];
  float sum_[kMaxTileRows];
  std::int32_t visible_[kMaxTileRows];
};

}  // namespace troupe::cpu::TROUPE_ISA
