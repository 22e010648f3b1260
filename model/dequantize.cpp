#include "model/dequantize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "model/cpu/bfloat16.hpp"

// Compiled with -ffp-contract=off: a fused multiply-add would round otherwise than gguf-py does.
namespace troupe {
namespace {

/// Elements of a block of 4, 5 or 8 bits, and of a K-quantized super-block.
constexpr std::size_t kSmallBlock = 32;
constexpr std::size_t kSuperBlock = 256;

template <class T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  return value;
}

float f16_to_f32(std::uint16_t half) {
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  // A subnormal half is a multiple of 2^-24, and a normal float.
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24F);
  const std::uint32_t normal = ((exponent == 31 ? 255 : exponent + 112) << 23U) | (mantissa << 13U);
  const std::uint32_t sign = static_cast<std::uint32_t>(half >> 15U) << 31U;
  return std::bit_cast<float>(sign | (exponent == 0 ? subnormal : normal));
}

float load_f16(const std::byte* source) { return f16_to_f32(load<std::uint16_t>(source)); }

float load_bf16(const std::byte* source) { return cpu::to_float(cpu::BFloat16{load<std::uint16_t>(source)}); }

std::uint32_t low_nibble(std::byte byte) { return std::to_integer<std::uint32_t>(byte) & 0xFU; }
std::uint32_t high_nibble(std::byte byte) { return std::to_integer<std::uint32_t>(byte) >> 4U; }
std::uint32_t bit(std::byte byte, unsigned index) { return (std::to_integer<std::uint32_t>(byte) >> index) & 1U; }

float centred(std::uint32_t value, int center) { return static_cast<float>(static_cast<int>(value) - center); }

/// Scale, then 16 bytes: element i in the low and element i + 16 in the high nibble of byte i.
void dequantize_q4_0(const std::byte* block, float* out) {
  const float scale = load_f16(block);
  const std::byte* nibbles = block + 2;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = scale * centred(low_nibble(nibbles[i]), 8);
    out[i + 16] = scale * centred(high_nibble(nibbles[i]), 8);
  }
}

/// Scale, minimum, nibbles.
void dequantize_q4_1(const std::byte* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::byte* nibbles = block + 4;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(low_nibble(nibbles[i])) + minimum;
    out[i + 16] = scale * static_cast<float>(high_nibble(nibbles[i])) + minimum;
  }
}

/// Scale, a fifth bit for each element, nibbles.
void dequantize_q5_0(const std::byte* block, float* out) {
  const float scale = load_f16(block);
  const auto fifth = load<std::uint32_t>(block + 2);
  const std::byte* nibbles = block + 6;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = scale * centred(low_nibble(nibbles[i]) | ((fifth >> i) & 1U) << 4U, 16);
    out[i + 16] = scale * centred(high_nibble(nibbles[i]) | ((fifth >> (i + 16)) & 1U) << 4U, 16);
  }
}

/// Scale, minimum, a fifth bit for each element, nibbles.
void dequantize_q5_1(const std::byte* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const auto fifth = load<std::uint32_t>(block + 4);
  const std::byte* nibbles = block + 8;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(low_nibble(nibbles[i]) | ((fifth >> i) & 1U) << 4U) + minimum;
    out[i + 16] = scale * static_cast<float>(high_nibble(nibbles[i]) | ((fifth >> (i + 16)) & 1U) << 4U) + minimum;
  }
}

/// Scale, then signed bytes.
void dequantize_q8_0(const std::byte* block, float* out) {
  const float scale = load_f16(block);
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = static_cast<float>(std::bit_cast<std::int8_t>(block[2 + i])) * scale;
  }
}

/// Scales and minima of the eight rows of a Q4_K or Q5_K super-block.
struct RowScales {
  std::array<float, 8> scale{};
  std::array<float, 8> minimum{};
};

/// Scale of the scales, scale of the minima, then 6 bits for each scale and minimum: those of the first four rows in
/// the lower bits of bytes 0-3 and 4-7, those of the last four in the nibbles of bytes 8-11 and the upper bits left
/// over.
RowScales load_row_scales(const std::byte* block) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::byte* packed = block + 4;
  const auto six = [packed](std::size_t i) { return std::to_integer<std::uint32_t>(packed[i]) & 0x3FU; };
  const auto upper = [packed](std::size_t i) { return (std::to_integer<std::uint32_t>(packed[i]) >> 6U) << 4U; };
  RowScales rows;
  for (std::size_t i = 0; i < 4; ++i) {
    rows.scale[i] = scale * static_cast<float>(six(i));
    rows.minimum[i] = minimum * static_cast<float>(six(i + 4));
    rows.scale[i + 4] = scale * static_cast<float>(low_nibble(packed[i + 8]) | upper(i));
    rows.minimum[i + 4] = minimum * static_cast<float>(high_nibble(packed[i + 8]) | upper(i + 4));
  }
  return rows;
}

/// Row scales, then rows of 32 nibbles, two rows in each 32 bytes.
void dequantize_q4_k(const std::byte* block, float* out) {
  const RowScales rows = load_row_scales(block);
  for (std::size_t row = 0; row < 8; ++row) {
    const std::byte* nibbles = block + 16 + row / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint32_t value = row % 2 == 0 ? low_nibble(nibbles[i]) : high_nibble(nibbles[i]);
      out[row * 32 + i] = rows.scale[row] * static_cast<float>(value) - rows.minimum[row];
    }
  }
}

/// Row scales, 32 bytes with the fifth bits (row r in bit r), nibbles.
void dequantize_q5_k(const std::byte* block, float* out) {
  const RowScales rows = load_row_scales(block);
  const std::byte* fifth = block + 16;
  for (std::size_t row = 0; row < 8; ++row) {
    const std::byte* nibbles = block + 48 + row / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint32_t nibble = row % 2 == 0 ? low_nibble(nibbles[i]) : high_nibble(nibbles[i]);
      const std::uint32_t value = nibble | bit(fifth[i], static_cast<unsigned>(row)) << 4U;
      out[row * 32 + i] = rows.scale[row] * static_cast<float>(value) - rows.minimum[row];
    }
  }
}

/// 128 bytes of nibbles, 64 bytes of upper bit pairs, a signed scale for each 16 elements, scale of the scales. Each
/// half of the block is four rows of 32: two in the low, two in the high nibbles, row r's upper bits in pair r.
void dequantize_q6_k(const std::byte* block, float* out) {
  const std::byte* scales = block + 192;
  const float scale = load_f16(block + 208);
  for (std::size_t row = 0; row < 8; ++row) {
    const std::size_t half = row / 4;
    const std::size_t quarter = row % 4;
    const std::byte* nibbles = block + half * 64 + quarter % 2 * 32;
    const std::byte* pairs = block + 128 + half * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t element = row * 32 + i;
      const std::uint32_t nibble = quarter < 2 ? low_nibble(nibbles[i]) : high_nibble(nibbles[i]);
      const std::uint32_t upper = (std::to_integer<std::uint32_t>(pairs[i]) >> (2 * quarter)) & 3U;
      const float row_scale = scale * static_cast<float>(std::bit_cast<std::int8_t>(scales[element / 16]));
      out[element] = row_scale * centred(nibble | upper << 4U, 32);
    }
  }
}

using BlockFunction = void (*)(const std::byte* block, float* out);

BlockFunction block_function(DType type) {
  switch (type) {
    case DType::q4_0:
      return dequantize_q4_0;
    case DType::q4_1:
      return dequantize_q4_1;
    case DType::q5_0:
      return dequantize_q5_0;
    case DType::q5_1:
      return dequantize_q5_1;
    case DType::q8_0:
      return dequantize_q8_0;
    case DType::q4_k:
      return dequantize_q4_k;
    case DType::q5_k:
      return dequantize_q5_k;
    case DType::q6_k:
      return dequantize_q6_k;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::other:
      break;
  }
  return nullptr;
}

std::uint16_t round_to_bf16(float value) { return cpu::to_bfloat16(value).bits; }

}  // namespace

void convert_to_f32(DType type, std::span<const std::byte> source, std::span<float> out) noexcept {
  if (out.empty()) {
    return;
  }
  if (type == DType::f32) {
    std::memcpy(out.data(), source.data(), out.size_bytes());
    return;
  }
  if (const BlockFunction dequantize = block_function(type)) {
    const DTypeLayout layout = layout_of(type);
    const std::size_t blocks = out.size() / layout.block_elements;
    for (std::size_t i = 0; i < blocks; ++i) {
      dequantize(source.data() + i * layout.block_bytes, out.data() + i * layout.block_elements);
    }
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* element = source.data() + 2 * i;
    out[i] = type == DType::f16 ? load_f16(element) : load_bf16(element);
  }
}

void convert_to_bf16(DType type, std::span<const std::byte> source, std::span<std::uint16_t> out) noexcept {
  if (out.empty()) {
    return;
  }
  if (type == DType::bf16) {
    std::memcpy(out.data(), source.data(), out.size_bytes());
    return;
  }
  if (const BlockFunction dequantize = block_function(type)) {
    const DTypeLayout layout = layout_of(type);
    const std::size_t blocks = out.size() / layout.block_elements;
    std::array<float, kSuperBlock> values{};
    for (std::size_t i = 0; i < blocks; ++i) {
      dequantize(source.data() + i * layout.block_bytes, values.data());
      std::transform(values.begin(), values.begin() + layout.block_elements,
                     out.begin() + static_cast<std::ptrdiff_t>(i * layout.block_elements), round_to_bf16);
    }
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = round_to_bf16(type == DType::f16 ? load_f16(source.data() + 2 * i) : load<float>(source.data() + 4 * i));
  }
}

}  // namespace troupe
