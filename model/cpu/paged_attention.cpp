#include "model/cpu/paged_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <omp.h>

namespace troupe::cpu {

namespace {

/// A thread's share of the keys is never shorter than this: merging costs as much as some dozen keys.
constexpr std::int32_t kMinKeysPerSplit = 256;

template <class T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return to_bfloat16(value);
  }
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionShape& shape, std::vector<AttentionRow> rows, std::int32_t num_threads)
    : shape_(shape), group_(shape.num_heads / shape.num_kv_heads), rows_(std::move(rows)) {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    add_tiles(static_cast<std::int32_t>(row), num_threads);
  }
  partials_.resize(static_cast<std::size_t>(partial_size()) *
                   (merges_.empty() ? 0 : static_cast<std::size_t>(merges_.back().first + merges_.back().count)));
  std::int64_t num_products = 0;
  for (const Tile& tile : tiles_) {
    num_products += std::int64_t{tile.key_end - tile.key_begin} * tile.num_tokens * group_ * shape_.head_dim;
  }
  // To start and join a team of threads takes as long as about so many products.
  constexpr std::int64_t kWorthThreads = 1 << 15;
  worth_threads_ = tiles_.size() > 1 && num_products > kWorthThreads;
  scratch_.resize(static_cast<std::size_t>(std::max(num_threads, 1)));
  for (Scratch& scratch : scratch_) {
    scratch.kernel.resize(static_cast<std::size_t>(attention_scratch_size(shape_.head_dim)));
    scratch.result.resize(static_cast<std::size_t>(partial_size()));
  }
  // Long tiles first, so that no thread is left with one at the end.
  std::ranges::stable_sort(tiles_, std::greater<>(), [](const Tile& tile) {
    return std::int64_t{tile.key_end - tile.key_begin} * tile.num_tokens;
  });
}

void AttentionPlan::add_tiles(std::int32_t row_index, std::int32_t num_threads) {
  const AttentionRow& row = rows_[static_cast<std::size_t>(row_index)];
  if (shape_.sliding_window > 0) {
    for (std::int32_t head = 0; head < shape_.num_kv_heads; ++head) {
      tiles_.push_back(Tile{.row = row_index,
                            .kv_head = head,
                            .first_token = 0,
                            .num_tokens = row.query_length,
                            .key_begin = std::max(0, row.past_length - (shape_.sliding_window - 1)),
                            .key_end = row.past_length + row.query_length});
    }
    return;
  }
  const std::int32_t tokens_per_tile = std::max(1, kMaxTileRows / group_);
  // Split the keys only where there are too few requests to give every thread a few tiles.
  const auto num_tiles = static_cast<std::int64_t>(rows_.size()) * shape_.num_kv_heads;
  const auto wanted_splits = static_cast<std::int32_t>(std::max<std::int64_t>(1, 4 * num_threads / num_tiles));
  for (std::int32_t head = 0; head < shape_.num_kv_heads; ++head) {
    for (std::int32_t token = 0; token < row.query_length; token += tokens_per_tile) {
      Tile tile{.row = row_index,
                .kv_head = head,
                .first_token = token,
                .num_tokens = std::min(tokens_per_tile, row.query_length - token)};
      const std::int32_t num_keys = row.past_length + token + tile.num_tokens;
      const std::int32_t splits = num_threads > 1 ? std::clamp(num_keys / kMinKeysPerSplit, 1, wanted_splits) : 1;
      if (splits == 1) {
        tile.key_end = num_keys;
        tiles_.push_back(tile);
        continue;
      }
      const std::int32_t first = merges_.empty() ? 0 : merges_.back().first + merges_.back().count;
      merges_.push_back(Merge{.tile = tile, .first = first, .count = splits});
      for (std::int32_t split = 0; split < splits; ++split) {
        tile.key_begin = static_cast<std::int32_t>(std::int64_t{num_keys} * split / splits);
        tile.key_end = static_cast<std::int32_t>(std::int64_t{num_keys} * (split + 1) / splits);
        tile.partial = first + split;
        tiles_.push_back(tile);
      }
    }
  }
}

std::int64_t AttentionPlan::partial_size() const {
  const std::int64_t rows = std::max(kMaxTileRows, group_);
  return rows * (2 + std::int64_t{shape_.head_dim});
}

AttentionPartial AttentionPlan::partial_in(float* memory) const {
  const std::int64_t rows = std::max(kMaxTileRows, group_);
  return {.maximum = memory, .sum = memory + rows, .values = memory + 2 * rows};
}

template <class T>
void AttentionPlan::run(const AttentionData<T>& data) {
  const auto num_tiles = static_cast<std::int64_t>(tiles_.size());
  const auto num_threads = static_cast<int>(scratch_.size());
#pragma omp parallel for schedule(dynamic, 1) num_threads(num_threads) if (worth_threads_)
  for (std::int64_t i = 0; i < num_tiles; ++i) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(omp_get_thread_num())];
    if (shape_.sliding_window > 0) {
      run_sliding(tiles_[static_cast<std::size_t>(i)], data, scratch);
    } else {
      run_full(tiles_[static_cast<std::size_t>(i)], data, scratch);
    }
  }
  for (const Merge& merge : merges_) {
    const auto memory_of = [this](std::int32_t partial) {
      return partial_in(partials_.data() + partial * partial_size());
    };
    const AttentionPartial total = memory_of(merge.first);
    const std::int32_t rows = merge.tile.num_tokens * group_;
    for (std::int32_t other = 1; other < merge.count; ++other) {
      const AttentionPartial part = memory_of(merge.first + other);
      for (std::int32_t row = 0; row < rows; ++row) {
        if (part.sum[row] == 0.0F) {
          continue;
        }
        const float maximum = std::max(total.maximum[row], part.maximum[row]);
        const float keep = std::exp(total.maximum[row] - maximum);
        const float take = std::exp(part.maximum[row] - maximum);
        total.maximum[row] = maximum;
        total.sum[row] = total.sum[row] * keep + part.sum[row] * take;
        float* sums = total.values + std::int64_t{row} * shape_.head_dim;
        const float* values = part.values + std::int64_t{row} * shape_.head_dim;
        for (std::int32_t d = 0; d < shape_.head_dim; ++d) {
          sums[d] = sums[d] * keep + values[d] * take;
        }
      }
    }
    write(merge.tile, total, data.out);
  }
}

template <class T>
void AttentionPlan::run_full(const Tile& tile, const AttentionData<T>& data, Scratch& scratch) {
  const AttentionRow& row = rows_[static_cast<std::size_t>(tile.row)];
  const std::int64_t head_offset = std::int64_t{tile.kv_head} * shape_.head_dim;
  const AttentionTile<T> kernel_tile = {
      .queries =
          data.queries + (std::int64_t{row.query_start} + tile.first_token) * data.query_stride + head_offset * group_,
      .query_stride = data.query_stride,
      .num_tokens = tile.num_tokens,
      .group = group_,
      .head_dim = shape_.head_dim,
      .visible_keys = row.past_length + tile.first_token + 1,
      .key_begin = tile.key_begin,
      .key_end = tile.key_end,
      .block_table = row.block_table.data(),
      .block_size = shape_.block_size,
      .keys = data.keys + head_offset,
      .values = data.values + head_offset,
      .slot_stride = std::int64_t{shape_.num_kv_heads} * shape_.head_dim,
      .scale = shape_.scale,
  };
  float* memory = tile.partial < 0 ? scratch.result.data() : partials_.data() + tile.partial * partial_size();
  const AttentionPartial result = partial_in(memory);
  best_kernels().typed<T>().attention(kernel_tile, result, scratch.kernel.data());
  if (tile.partial < 0) {
    write(tile, result, data.out);
  }
}

template <class T>
void AttentionPlan::run_sliding(const Tile& tile, const AttentionData<T>& data, Scratch& scratch) {
  const AttentionRow& row = rows_[static_cast<std::size_t>(tile.row)];
  const std::int32_t window = shape_.sliding_window;
  const std::int64_t head_offset = std::int64_t{tile.kv_head} * shape_.head_dim;
  const std::int64_t slot_stride = std::int64_t{shape_.num_kv_heads} * shape_.head_dim;
  const std::size_t bytes = static_cast<std::size_t>(shape_.head_dim) * sizeof(T);
  const std::int32_t num_keys = tile.key_end - tile.key_begin;
  scratch.keys.resize(static_cast<std::size_t>(num_keys) * bytes);
  scratch.values.resize(static_cast<std::size_t>(num_keys) * bytes);
  for (std::int32_t i = 0; i < num_keys; ++i) {
    const std::int32_t position = tile.key_begin + i;
    const T* key = nullptr;
    const T* value = nullptr;
    if (position < row.past_length) {
      const std::int32_t ring_slot = position % window;
      const std::int64_t block = row.block_table[static_cast<std::size_t>(ring_slot / shape_.block_size)];
      const std::int64_t offset =
          (block * shape_.block_size + ring_slot % shape_.block_size) * slot_stride + head_offset;
      key = data.keys + offset;
      value = data.values + offset;
    } else {
      const std::int64_t token = std::int64_t{row.query_start} + position - row.past_length;
      key = data.new_keys + token * data.key_stride + head_offset;
      value = data.new_values + token * data.key_stride + head_offset;
    }
    std::memcpy(scratch.keys.data() + static_cast<std::size_t>(i) * bytes, key, bytes);
    std::memcpy(scratch.values.data() + static_cast<std::size_t>(i) * bytes, value, bytes);
  }
  // Each token's window begins elsewhere, so each is a tile of its own. The gathered keys are one block.
  constexpr BlockId kOnlyBlock = 0;
  const AttentionPartial result = partial_in(scratch.result.data());
  for (std::int32_t token = 0; token < tile.num_tokens; ++token) {
    const std::int32_t position = row.past_length + token;
    const AttentionTile<T> kernel_tile = {
        .queries = data.queries + (std::int64_t{row.query_start} + token) * data.query_stride + head_offset * group_,
        .query_stride = data.query_stride,
        .num_tokens = 1,
        .group = group_,
        .head_dim = shape_.head_dim,
        .visible_keys = position + 1 - tile.key_begin,
        .key_begin = std::max(0, position - (window - 1)) - tile.key_begin,
        .key_end = position + 1 - tile.key_begin,
        .block_table = &kOnlyBlock,
        .block_size = num_keys,
        .keys = reinterpret_cast<const T*>(scratch.keys.data()),
        .values = reinterpret_cast<const T*>(scratch.values.data()),
        .slot_stride = shape_.head_dim,
        .scale = shape_.scale,
    };
    best_kernels().typed<T>().attention(kernel_tile, result, scratch.kernel.data());
    write(Tile{.row = tile.row, .kv_head = tile.kv_head, .first_token = token, .num_tokens = 1}, result, data.out);
  }
}

template <class T>
void AttentionPlan::write(const Tile& tile, const AttentionPartial& partial, T* out) const {
  const AttentionRow& row = rows_[static_cast<std::size_t>(tile.row)];
  const std::int64_t head_dim = shape_.head_dim;
  for (std::int32_t i = 0; i < tile.num_tokens * group_; ++i) {
    const std::int64_t token = std::int64_t{row.query_start} + tile.first_token + i / group_;
    const std::int64_t head = std::int64_t{tile.kv_head} * group_ + i % group_;
    T* to = out + (token * shape_.num_heads + head) * head_dim;
    const float* values = partial.values + i * head_dim;
    const float inverse = 1.0F / partial.sum[i];
    for (std::int64_t d = 0; d < head_dim; ++d) {
      to[d] = from_float<T>(values[d] * inverse);
    }
  }
}

template void AttentionPlan::run(const AttentionData<float>& data);
template void AttentionPlan::run(const AttentionData<BFloat16>& data);

}  // namespace troupe::cpu
