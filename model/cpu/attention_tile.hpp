#pragma once

/// Attention of one tile: which loop suits it, and the loop for tiles of few rows.

#include <cstdint>

#include "model/cpu/attention_many_rows.hpp"
#include "model/cpu/kernels.hpp"
#include "model/cpu/vector.hpp"

namespace troupe::cpu::TROUPE_ISA {

/// Decoding: vectors along head_dim, so that a key or value is loaded once for all heads of its group and no lane is
/// idle, at the price of a sum over lanes for each score.
template <class T>
class FewRows {
 public:
  /// From here on, vectors along the rows are at least half full and need no sums over lanes.
  static constexpr std::int32_t kMaxRows = kLanes / 2;

  FewRows(const AttentionTile<T>& tile, const AttentionPartial& out, float* scratch)
      : tile_(tile), out_(out), rows_(tile.num_tokens * tile.group), queries_(scratch) {
    scores_ = scratch + static_cast<std::int64_t>(rows_) * tile.head_dim;
    for (std::int32_t row = 0; row < rows_; ++row) {
      for (std::int32_t d = 0; d < tile.head_dim; ++d) {
        queries_[row * tile.head_dim + d] = load_one(query_of(tile, row) + d) * tile.scale;
        out.values[row * tile.head_dim + d] = 0.0F;
      }
      out.maximum[row] = -kInfinity;
      out.sum[row] = 0.0F;
    }
  }

  void run() {
    for (std::int32_t begin = tile_.key_begin; begin < tile_.key_end; begin += kKeysAtOnce) {
      const std::int32_t count = begin + kKeysAtOnce < tile_.key_end ? kKeysAtOnce : tile_.key_end - begin;
      find_slots(tile_, begin, count, slots_);
      for_row_groups([&]<int Rows>(std::int32_t row) { score<Rows>(row, count); });
      for (std::int32_t row = 0; row < rows_; ++row) {
        update_softmax(row, begin, count);
      }
      for_row_groups([&]<int Rows>(std::int32_t row) { accumulate<Rows>(row, count); });
    }
  }

 private:
  template <class Function>
  void for_row_groups(Function function) {
    std::int32_t row = 0;
    for (; row + 4 <= rows_; row += 4) {
      function.template operator()<4>(row);
    }
    switch (rows_ - row) {
      case 3:
        return function.template operator()<3>(row);
      case 2:
        return function.template operator()<2>(row);
      case 1:
        return function.template operator()<1>(row);
      default:
        return;
    }
  }

  template <int Rows>
  void score(std::int32_t first_row, std::int32_t count) {
    const float* queries = queries_ + static_cast<std::int64_t>(first_row) * tile_.head_dim;
    for (std::int32_t key = 0; key < count; ++key) {
      const T* values = tile_.keys + slots_[key];
      Floats products[Rows] = {};
      for (std::int32_t d = 0; d < tile_.head_dim; d += kLanes) {
        const Floats k = load(values + d);
        for (int row = 0; row < Rows; ++row) {
          products[row] += load(queries + row * tile_.head_dim + d) * k;
        }
      }
      for (int row = 0; row < Rows; ++row) {
        scores_[(first_row + row) * kKeysAtOnce + key] = sum_of(products[row]);
      }
    }
  }

  /// Turns a row's scores into weights relative to the largest so far, and rescales what it has summed up.
  void update_softmax(std::int32_t row, std::int32_t begin, std::int32_t count) {
    float* scores = scores_ + row * kKeysAtOnce;
    const std::int32_t visible = tile_.visible_keys + row / tile_.group - begin;
    for (std::int32_t key = visible < 0 ? 0 : visible; key < count; ++key) {
      scores[key] = -kInfinity;
    }
    for (std::int32_t key = count; key % kLanes != 0; ++key) {
      scores[key] = -kInfinity;
    }
    Floats largest = broadcast(out_.maximum[row]);
    for (std::int32_t key = 0; key < count; key += kLanes) {
      largest = max(load(scores + key), largest);
    }
    float maximum = largest[0];
    for (int lane = 1; lane < kLanes; ++lane) {
      maximum = largest[lane] > maximum ? largest[lane] : maximum;
    }
    const float reference = maximum == -kInfinity ? 0.0F : maximum;
    Floats sum{};
    for (std::int32_t key = 0; key < count; key += kLanes) {
      const Floats weight = exp(load(scores + key) - reference);
      store(scores + key, weight);
      sum += weight;
    }
    const Floats correction = exp(broadcast(out_.maximum[row] - reference));
    out_.sum[row] = out_.sum[row] * correction[0] + sum_of(sum);
    out_.maximum[row] = maximum;
    float* values = out_.values + static_cast<std::int64_t>(row) * tile_.head_dim;
    for (std::int32_t d = 0; d < tile_.head_dim; d += kLanes) {
      store(values + d, load(values + d) * correction);
    }
  }

  template <int Rows>
  void accumulate(std::int32_t first_row, std::int32_t count) {
    float* values = out_.values + static_cast<std::int64_t>(first_row) * tile_.head_dim;
    const float* weights = scores_ + first_row * kKeysAtOnce;
    for (std::int32_t d = 0; d < tile_.head_dim; d += kLanes) {
      Floats sums[Rows];
      for (int row = 0; row < Rows; ++row) {
        sums[row] = load(values + row * tile_.head_dim + d);
      }
      for (std::int32_t key = 0; key < count; ++key) {
        const Floats v = load(tile_.values + slots_[key] + d);
        for (int row = 0; row < Rows; ++row) {
          sums[row] += weights[row * kKeysAtOnce + key] * v;
        }
      }
      for (int row = 0; row < Rows; ++row) {
        store(values + row * tile_.head_dim + d, sums[row]);
      }
    }
  }

  const AttentionTile<T>& tile_;
  const AttentionPartial& out_;
  std::int32_t rows_;
  /// (rows, head_dim), scaled
  float* queries_;
  /// (rows, kKeysAtOnce)
  float* scores_;
  std::int64_t slots_[kKeysAtOnce];
};

template <class T>
void attention(const AttentionTile<T>& tile, const AttentionPartial& out, float* scratch) {
  const bool few_rows = tile.num_tokens * tile.group <= FewRows<T>::kMaxRows && tile.head_dim % kLanes == 0;
  if (few_rows) {
    FewRows<T>(tile, out, scratch).run();
  } else {
    ManyRows<T>(tile, out, scratch).run();
  }
}

}  // namespace troupe::cpu::TROUPE_ISA
