/// The paged attention kernels against plain attention in double precision. B101.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "model/cpu/kernels.hpp"
#include "model/cpu/paged_attention.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using cpu::BFloat16;

template <class T>
T make(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return cpu::to_bfloat16(value);
  }
}

/// A step's rows over a cache whose blocks are handed out at random.
template <class T>
struct Case {
  cpu::AttentionShape shape;
  std::vector<std::pair<std::int32_t, std::int32_t>> lengths;  // past, query

  std::vector<std::vector<BlockId>> tables;
  std::vector<cpu::AttentionRow> rows;
  std::vector<T> qkv;
  std::vector<T> keys;
  std::vector<T> values;
  /// Keys and values of every row's whole sequence, (positions, kv heads, head_dim).
  std::vector<std::vector<T>> all_keys;
  std::vector<std::vector<T>> all_values;
  std::int64_t stride = 0;

  explicit Case(cpu::AttentionShape given, std::vector<std::pair<std::int32_t, std::int32_t>> row_lengths)
      : shape(given), lengths(std::move(row_lengths)) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const std::int32_t capacity_of_ring = shape.sliding_window;
    const std::int64_t kv_size = std::int64_t{shape.num_kv_heads} * shape.head_dim;
    stride = std::int64_t{shape.num_heads} * shape.head_dim + 2 * kv_size;
    std::int32_t num_blocks = 0;
    std::int32_t num_tokens = 0;
    for (const auto& [past, query] : lengths) {
      const std::int32_t held = capacity_of_ring > 0 ? std::min(past + query, capacity_of_ring) : past + query;
      tables.emplace_back(static_cast<std::size_t>((held + shape.block_size - 1) / shape.block_size));
      num_blocks += static_cast<std::int32_t>(tables.back().size());
      num_tokens += query;
    }
    std::vector<BlockId> blocks(static_cast<std::size_t>(num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    // What no row may read is NaN.
    const T nan = make<T>(std::numeric_limits<float>::quiet_NaN());
    keys.assign(static_cast<std::size_t>(num_blocks * shape.block_size * kv_size), nan);
    values = keys;
    qkv.resize(static_cast<std::size_t>(num_tokens * stride));
    for (T& value : qkv) {
      value = make<T>(normal(random));
    }
    std::int32_t start = 0;
    for (std::size_t row = 0; row < lengths.size(); ++row) {
      const auto [past, query] = lengths[row];
      for (BlockId& block : tables[row]) {
        block = blocks.back();
        blocks.pop_back();
      }
      all_keys.emplace_back(static_cast<std::size_t>((past + query) * kv_size));
      all_values.emplace_back(all_keys.back().size());
      for (std::int64_t i = 0; i < past * kv_size; ++i) {
        all_keys[row][static_cast<std::size_t>(i)] = make<T>(normal(random));
        all_values[row][static_cast<std::size_t>(i)] = make<T>(normal(random));
      }
      for (std::int32_t token = 0; token < query; ++token) {
        const T* const from = qkv.data() + (start + token) * stride + std::int64_t{shape.num_heads} * shape.head_dim;
        std::copy_n(from, kv_size, all_keys[row].data() + (past + token) * kv_size);
        std::copy_n(from + kv_size, kv_size, all_values[row].data() + (past + token) * kv_size);
      }
      // Full groups have the step's own keys in the cache, sliding ones the window before the step.
      const std::int32_t end = capacity_of_ring > 0 ? past : past + query;
      const std::int32_t begin = capacity_of_ring > 0 ? std::max(0, past - capacity_of_ring) : 0;
      for (std::int32_t position = begin; position < end; ++position) {
        const std::int32_t place = capacity_of_ring > 0 ? position % capacity_of_ring : position;
        const std::int64_t slot =
            std::int64_t{tables[row][static_cast<std::size_t>(place / shape.block_size)]} * shape.block_size +
            place % shape.block_size;
        std::copy_n(all_keys[row].data() + position * kv_size, kv_size, keys.data() + slot * kv_size);
        std::copy_n(all_values[row].data() + position * kv_size, kv_size, values.data() + slot * kv_size);
      }
      rows.push_back({.query_start = start, .query_length = query, .past_length = past, .block_table = tables[row]});
      start += query;
    }
  }

  [[nodiscard]] std::vector<T> run(std::int32_t num_threads) {
    std::vector<T> out(static_cast<std::size_t>(rows.back().query_start + rows.back().query_length) *
                       static_cast<std::size_t>(shape.num_heads * shape.head_dim));
    cpu::AttentionPlan plan(shape, rows, num_threads);
    const T* const new_keys = qkv.data() + std::int64_t{shape.num_heads} * shape.head_dim;
    plan.run(cpu::AttentionData<T>{.queries = qkv.data(),
                                   .query_stride = stride,
                                   .new_keys = new_keys,
                                   .new_values = new_keys + std::int64_t{shape.num_kv_heads} * shape.head_dim,
                                   .key_stride = stride,
                                   .keys = keys.data(),
                                   .values = values.data(),
                                   .out = out.data()});
    return out;
  }

  /// The largest difference from plain attention.
  [[nodiscard]] double largest_error(const std::vector<T>& out) const {
    double largest = 0.0;
    const std::int32_t group = shape.num_heads / shape.num_kv_heads;
    const std::int64_t kv_size = std::int64_t{shape.num_kv_heads} * shape.head_dim;
    for (std::size_t row = 0; row < lengths.size(); ++row) {
      for (std::int32_t token = 0; token < lengths[row].second; ++token) {
        const std::int32_t position = lengths[row].first + token;
        const std::int32_t begin = shape.sliding_window > 0 ? std::max(0, position - shape.sliding_window + 1) : 0;
        for (std::int32_t head = 0; head < shape.num_heads; ++head) {
          const std::int64_t at = std::int64_t{rows[row].query_start} + token;
          const T* const query = qkv.data() + at * stride + std::int64_t{head} * shape.head_dim;
          const std::int64_t kv_offset = std::int64_t{head / group} * shape.head_dim;
          std::vector<double> weights;
          for (std::int32_t p = begin; p <= position; ++p) {
            double score = 0.0;
            for (std::int32_t d = 0; d < shape.head_dim; ++d) {
              score += static_cast<double>(cpu::to_float(query[d])) *
                       cpu::to_float(all_keys[row][static_cast<std::size_t>(p * kv_size + kv_offset + d)]);
            }
            weights.push_back(score * shape.scale);
          }
          const double maximum = *std::max_element(weights.begin(), weights.end());
          double sum = 0.0;
          for (double& weight : weights) {
            weight = std::exp(weight - maximum);
            sum += weight;
          }
          for (std::int32_t d = 0; d < shape.head_dim; ++d) {
            double expected = 0.0;
            for (std::int32_t p = begin; p <= position; ++p) {
              expected += weights[static_cast<std::size_t>(p - begin)] / sum *
                          cpu::to_float(all_values[row][static_cast<std::size_t>(p * kv_size + kv_offset + d)]);
            }
            const float got =
                cpu::to_float(out[static_cast<std::size_t>((at * shape.num_heads + head) * shape.head_dim + d)]);
            const double error = std::abs(expected - got);
            largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
          }
        }
      }
    }
    return largest;
  }
};

TEST_CASE("paged attention equals plain attention for any mix of rows") {
  const std::int32_t block_size = GENERATE(1, 4, 16, 32);
  const std::int32_t head_dim = GENERATE(16, 64, 80);
  const std::int32_t num_kv_heads = GENERATE(1, 3);
  const std::int32_t group = GENERATE(1, 3, 8);
  const std::int32_t num_threads = GENERATE(1, 2);
  CAPTURE(block_size, head_dim, num_kv_heads, group, num_threads);
  const cpu::AttentionShape shape{.num_heads = num_kv_heads * group,
                                  .num_kv_heads = num_kv_heads,
                                  .head_dim = head_dim,
                                  .block_size = block_size,
                                  .scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
  Case<float> rows(shape, {{0, 1}, {0, 37}, {5, 1}, {64, 9}, {33, 1}, {100, 70}});
  CHECK(rows.largest_error(rows.run(num_threads)) < 2e-5);
}

TEST_CASE("long contexts are split over threads and merged") {
  const cpu::AttentionShape shape{.num_heads = 2, .num_kv_heads = 1, .head_dim = 32, .block_size = 16, .scale = 0.2F};
  Case<float> rows(shape, {{3000, 1}});
  CHECK(rows.largest_error(rows.run(1)) < 2e-5);
  CHECK(rows.largest_error(rows.run(4)) < 2e-5);
}

TEST_CASE("sliding attention sees exactly its window") {
  const std::int32_t window = GENERATE(1, 5, 16, 40);
  const std::int32_t block_size = GENERATE(4, 16);
  CAPTURE(window, block_size);
  const cpu::AttentionShape shape{.num_heads = 6,
                                  .num_kv_heads = 2,
                                  .head_dim = 32,
                                  .block_size = block_size,
                                  .sliding_window = window,
                                  .scale = 0.2F};
  Case<float> rows(shape,
                   {{0, 1}, {window - 1, 1}, {window, 1}, {window + 1, 3}, {3 * window, 7}, {0, 3 * window + 1}});
  CHECK(rows.largest_error(rows.run(2)) < 2e-5);
}

TEST_CASE("paged attention in bfloat16 is as exact as its results' type") {
  const cpu::AttentionShape shape{.num_heads = 9, .num_kv_heads = 3, .head_dim = 64, .block_size = 32, .scale = 0.125F};
  Case<BFloat16> rows(shape, {{0, 33}, {50, 1}, {200, 20}});
  CHECK(rows.largest_error(rows.run(2)) < 2e-2);
}

TEST_CASE("the kernels of every instruction set agree") {
  const auto kernels = cpu::available_kernels();
  REQUIRE_FALSE(kernels.empty());
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(77);
  std::vector<float> weight(77);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(random);
    weight[i] = normal(random);
  }
  double square = 0.0;
  for (const float value : x) {
    square += static_cast<double>(value) * value;
  }
  for (const cpu::Kernels* table : kernels) {
    CAPTURE(std::string(table->instruction_set));
    std::vector<float> out(77);
    table->f32.rms_norm(x.data(), weight.data(), 1e-5F, 77, out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(out[i] == Approx(x[i] / std::sqrt(square / 77.0 + 1e-5) * weight[i]).margin(1e-5));
    }
    table->f32.activate(Activation::silu, x.data(), weight.data(), 77, out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(out[i] == Approx(x[i] / (1.0 + std::exp(-static_cast<double>(x[i]))) * weight[i]).margin(1e-5));
    }
  }
}

}  // namespace
}  // namespace troupe::test
