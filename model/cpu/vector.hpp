#pragma once

/// SIMD vectors in the compilers' own extension (GCC and Clang), as wide as the including source file asks for by
/// TROUPE_LANES. TROUPE_ISA names a namespace of its own, so that the linker never takes a function that was compiled
/// for one instruction set for its namesake of another. For the same reason no inline function of another header is
/// used.

#include <cstdint>

#include "model/cpu/bfloat16.hpp"

namespace troupe::cpu::TROUPE_ISA {

inline constexpr int kLanes = TROUPE_LANES;

using Floats = float __attribute__((vector_size(kLanes * 4)));
using Ints = std::int32_t __attribute__((vector_size(kLanes * 4)));
using Words = std::uint32_t __attribute__((vector_size(kLanes * 4)));
using HalfWords = std::uint16_t __attribute__((vector_size(kLanes * 2)));

inline constexpr float kInfinity = __builtin_inff();

inline Floats broadcast(float value) { return value - Floats{}; }

inline Floats load(const float* from) {
  Floats value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
inline Floats load(const BFloat16* from) {
  HalfWords bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
  return __builtin_bit_cast(Floats, __builtin_convertvector(bits, Words) << 16);
}
inline float load_one(const float* from) { return *from; }
inline float load_one(const BFloat16* from) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(from->bits) << 16);
}

inline void store(float* to, Floats value) { __builtin_memcpy(to, &value, sizeof(value)); }
inline void store(BFloat16* to, Floats value) {
  const Words bits = __builtin_bit_cast(Words, value);
  const Words rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const Words quiet = (bits >> 16) | 0x40U;
  const HalfWords stored = __builtin_convertvector(value == value ? rounded : quiet, HalfWords);
  __builtin_memcpy(to, &stored, sizeof(stored));
}
inline void store_one(float* to, float value) { *to = value; }
inline void store_one(BFloat16* to, float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = value == value ? bits + 0x7FFFU + ((bits >> 16) & 1U) : bits | 0x400000U;
  to->bits = static_cast<std::uint16_t>(rounded >> 16);
}

/// What a value becomes when it is stored as a T.
inline Floats round_to(const float* /*type*/, Floats value) { return value; }
inline Floats round_to(const BFloat16* /*type*/, Floats value) {
  const Words bits = __builtin_bit_cast(Words, value);
  const Words rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U;
  return value == value ? __builtin_bit_cast(Floats, rounded) : value;
}

inline Floats max(Floats a, Floats b) { return a > b ? a : b; }

/// Sum of the lanes, halving the vector each time. A template so that only the branch for its width is compiled.
template <class Vector>
float sum_of(Vector v) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
  if constexpr (kWidth == 16) {
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1);
  } else if constexpr (kWidth == 8) {
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1);
  } else {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
  }
  return v[0] + v[1];
}

/// e^x within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN. Cody and Waite's reduction,
/// then a polynomial (the coefficients of Cephes' expf).
inline Floats exp(Floats x) {
  constexpr float kLowest = -87.33654F;
  constexpr float kHighest = 88.72283F;
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRoundingMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Floats low = broadcast(kLowest);
  const Floats high = broadcast(kHighest);
  // Comparisons with NaN are false, so NaN goes through.
  const Floats clamped = x < low ? low : (x > high ? high : x);
  const Floats shifted = clamped * kLog2E + kRoundingMagic;
  const Floats n = shifted - kRoundingMagic;
  const Floats r = (clamped - n * kLn2High) - n * kLn2Low;
  Floats p = broadcast(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  // n may be 128: 2^n as the product of two halves.
  const Ints exponent = __builtin_bit_cast(Ints, shifted) - __builtin_bit_cast(std::int32_t, kRoundingMagic);
  const Ints half = exponent >> 1;
  const Floats scale1 = __builtin_bit_cast(Floats, (half + 127) << 23);
  const Floats scale2 = __builtin_bit_cast(Floats, (exponent - half + 127) << 23);
  const Floats value = p * scale1 * scale2;
  return x < low ? broadcast(0.0F) : (x > high ? broadcast(kInfinity) : value);
}

}  // namespace troupe::cpu::TROUPE_ISA
