#pragma once

/// Attention of a whole step over one layer's paged cache: cuts it into tiles, spreads these over threads, merges what
/// belongs together. No LibTorch.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/types.hpp"
#include "model/cpu/kernels.hpp"

namespace troupe::cpu {

/// One request's part of a step.
struct AttentionRow {
  /// Index of the row's first query token among the step's.
  std::int32_t query_start = 0;
  std::int32_t query_length = 0;
  /// Tokens in the cache before the step.
  std::int32_t past_length = 0;
  /// The request's blocks in this group.
  std::span<const BlockId> block_table;
};

struct AttentionShape {
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t block_size = 0;
  /// 0 for full attention, else the number of positions that a query sees, its own included.
  std::int32_t sliding_window = 0;
  float scale = 1.0F;
};

/// The data of one layer.
template <class T>
struct AttentionData {
  /// (tokens, num_heads, head_dim) and (tokens, num_kv_heads, head_dim); tokens are `*_stride` elements apart.
  const T* queries = nullptr;
  std::int64_t query_stride = 0;
  const T* new_keys = nullptr;
  const T* new_values = nullptr;
  std::int64_t key_stride = 0;
  /// (blocks, block_size, num_kv_heads, head_dim), contiguous.
  const T* keys = nullptr;
  const T* values = nullptr;
  /// (tokens, num_heads, head_dim), contiguous.
  T* out = nullptr;
};

/// How the attention of a step is cut; the same for every layer of a group.
///
/// A full-attention group reads the cache in place, so the step's own keys and values must be in it before. A sliding
/// group reads what earlier steps have cached and the step's own keys and values directly, so they must be written to
/// the cache afterwards: a ring holds no more than a window, and a new key may take the place of one that is still to
/// be read.
class AttentionPlan {
 public:
  /// `rows` and their tables outlive the plan.
  AttentionPlan(const AttentionShape& shape, std::vector<AttentionRow> rows, std::int32_t num_threads);

  template <class T>
  void run(const AttentionData<T>& data);

 private:
  /// Some query tokens of a row, for the heads of one key/value head, over a range of keys.
  struct Tile {
    std::int32_t row = 0;
    std::int32_t kv_head = 0;
    /// Within the row.
    std::int32_t first_token = 0;
    std::int32_t num_tokens = 0;
    std::int32_t key_begin = 0;
    std::int32_t key_end = 0;
    /// Where its partial result goes; -1 if it has all keys and writes the final one.
    std::int32_t partial = -1;
  };
  /// Partial results [first, first + count) make one result.
  struct Merge {
    Tile tile;
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  struct Scratch {
    std::vector<float> kernel;
    std::vector<float> result;
    /// Gathered keys and values of a sliding row, as bytes of T.
    std::vector<std::byte> keys;
    std::vector<std::byte> values;
  };

  void add_tiles(std::int32_t row, std::int32_t num_threads);
  [[nodiscard]] AttentionPartial partial_in(float* memory) const;
  [[nodiscard]] std::int64_t partial_size() const;
  template <class T>
  void run_full(const Tile& tile, const AttentionData<T>& data, Scratch& scratch);
  template <class T>
  void run_sliding(const Tile& tile, const AttentionData<T>& data, Scratch& scratch);
  template <class T>
  void write(const Tile& tile, const AttentionPartial& partial, T* out) const;

  AttentionShape shape_;
  std::int32_t group_ = 1;
  std::vector<AttentionRow> rows_;
  std::vector<Tile> tiles_;
  std::vector<Merge> merges_;
  bool worth_threads_ = false;
  std::vector<float> partials_;
  std::vector<Scratch> scratch_;
};

extern template void AttentionPlan::run(const AttentionData<float>& data);
extern template void AttentionPlan::run(const AttentionData<BFloat16>& data);

}  // namespace troupe::cpu
