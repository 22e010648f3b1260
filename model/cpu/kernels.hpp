#pragma once

/// The inner loops of a decoder on a CPU, compiled once for each instruction set from the same source and chosen when
/// the program runs. Raw pointers, one thread, no LibTorch: who calls them distributes the work.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cache/types.hpp"
#include "model/cpu/bfloat16.hpp"
#include "model/model_config.hpp"

namespace troupe::cpu {

/// A few query tokens of one sequence, for the query heads that share one key/value head. Query row `t * group + g` is
/// head `g` of token `t`.
template <class T>
struct AttentionTile {
  /// Head 0 of token 0; heads are `head_dim` apart, tokens `query_stride`.
  const T* queries = nullptr;
  std::int64_t query_stride = 0;
  std::int32_t num_tokens = 0;
  std::int32_t group = 0;
  std::int32_t head_dim = 0;
  /// Token t sees the keys [0, visible_keys + t); may be zero or negative.
  std::int32_t visible_keys = 0;
  /// The keys of this tile are [key_begin, key_end) of the sequence.
  std::int32_t key_begin = 0;
  std::int32_t key_end = 0;
  /// Key k lies in slot k % block_size of block block_table[k / block_size].
  const BlockId* block_table = nullptr;
  std::int32_t block_size = 0;
  /// Slot 0 of block 0 for this key/value head; slots are `slot_stride` elements apart.
  const T* keys = nullptr;
  const T* values = nullptr;
  std::int64_t slot_stride = 0;
  float scale = 1.0F;
};

/// Softmax-weighted sums over a range of keys, not yet normalized, so that ranges can be merged (Rabe and Staats,
/// "Self-attention does not need O(n^2) memory", 2021; Dao et al., "FlashAttention", 2022).
struct AttentionPartial {
  /// Largest score of each row; -inf if the row sees no key of the range.
  float* maximum = nullptr;
  /// Sum of exp(score - maximum) of each row.
  float* sum = nullptr;
  /// (rows, head_dim) sums of exp(score - maximum) * value.
  float* values = nullptr;
};

/// The kernels for one element type.
template <class T>
struct TypedKernels {
  /// out = x / sqrt(mean(x^2) + eps) * weight; the normalized x is rounded to T before the weight, as in transformers.
  void (*rms_norm)(const T* x, const T* weight, float eps, std::int64_t n, T* out) = nullptr;
  /// x += delta
  void (*add)(T* x, const T* delta, std::int64_t n) = nullptr;
  /// out = activation(gate) * up, the activation rounded to T before the product.
  void (*activate)(Activation activation, const T* gate, const T* up, std::int64_t n, T* out) = nullptr;
  /// Rotates pairs (i, i + half) of a head; `out` may be `in`.
  void (*rotate)(const T* in, const float* cosines, const float* sines, std::int64_t half, T* out) = nullptr;
  /// `scratch` holds `attention_scratch_size` floats.
  void (*attention)(const AttentionTile<T>& tile, const AttentionPartial& out, float* scratch) = nullptr;
};

struct Kernels {
  std::string_view instruction_set;
  TypedKernels<float> f32;
  TypedKernels<BFloat16> bf16;

  template <class T>
  [[nodiscard]] const TypedKernels<T>& typed() const noexcept;
};

template <>
[[nodiscard]] inline const TypedKernels<float>& Kernels::typed<float>() const noexcept {
  return f32;
}
template <>
[[nodiscard]] inline const TypedKernels<BFloat16>& Kernels::typed<BFloat16>() const noexcept {
  return bf16;
}

/// Most query rows (tokens * group) of an attention tile.
inline constexpr std::int32_t kMaxTileRows = 64;

/// Floats of scratch memory that `attention` needs.
[[nodiscard]] std::int64_t attention_scratch_size(std::int32_t head_dim) noexcept;

/// The kernels for the best instruction set that this machine has.
[[nodiscard]] const Kernels& best_kernels() noexcept;
/// All kernels that this machine can run, for tests.
[[nodiscard]] std::vector<const Kernels*> available_kernels();

}  // namespace troupe::cpu
