#pragma once

/// Kernels over rows of activations; see TypedKernels for what they compute.

#include <cstdint>

#include "model/cpu/vector.hpp"
#include "model/model_config.hpp"

namespace troupe::cpu::TROUPE_ISA {

/// out[i] = f(a[i], b[i]); `out` may be `a` or `b`.
template <class T, class Function>
void map(const T* a, const T* b, std::int64_t n, T* out, Function f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, f(load(a + i), load(b + i)));
  }
  if (i < n) {
    T rest_a[kLanes] = {};
    T rest_b[kLanes] = {};
    const auto bytes = static_cast<std::size_t>(n - i) * sizeof(T);
    __builtin_memcpy(rest_a, a + i, bytes);
    __builtin_memcpy(rest_b, b + i, bytes);
    store(rest_a, f(load(rest_a), load(rest_b)));
    __builtin_memcpy(out + i, rest_a, bytes);
  }
}

template <class T>
void rms_norm(const T* x, const T* weight, float eps, std::int64_t n, T* out) {
  Floats squares{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats value = load(x + i);
    squares += value * value;
  }
  float sum = sum_of(squares);
  for (; i < n; ++i) {
    sum += load_one(x + i) * load_one(x + i);
  }
  const float scale = 1.0F / __builtin_sqrtf(sum / static_cast<float>(n) + eps);
  map(x, weight, n, out, [scale, x](Floats value, Floats w) { return round_to(x, value * scale) * w; });
}

template <class T>
void add(T* x, const T* delta, std::int64_t n) {
  map(x, delta, n, x, [](Floats a, Floats b) { return a + b; });
}

inline Floats silu(Floats x) { return x / (1.0F + exp(-x)); }

/// tanh(u) = 1 - 2 / (e^2u + 1)
inline Floats gelu_tanh(Floats x) {
  constexpr float kSqrtTwoOverPi = 0.79788456080286535588F;
  const Floats u = kSqrtTwoOverPi * (x + 0.044715F * x * x * x);
  return 0.5F * x * (2.0F - 2.0F / (exp(2.0F * u) + 1.0F));
}

inline Floats gelu(Floats x) {
  constexpr float kSqrtHalf = 0.70710678118654752440F;
  Floats result{};
  for (int i = 0; i < kLanes; ++i) {
    result[i] = 0.5F * x[i] * (1.0F + __builtin_erff(x[i] * kSqrtHalf));
  }
  return result;
}

inline Floats relu(Floats x) { return x < 0.0F ? broadcast(0.0F) : x; }

template <class T>
void activate(Activation activation, const T* gate, const T* up, std::int64_t n, T* out) {
  const auto gated = [=](auto function) {
    map(gate, up, n, out, [=](Floats g, Floats u) { return round_to(gate, function(g)) * u; });
  };
  switch (activation) {
    case Activation::silu:
      return gated([](Floats x) { return silu(x); });
    case Activation::gelu:
      return gated([](Floats x) { return gelu(x); });
    case Activation::gelu_tanh:
      return gated([](Floats x) { return gelu_tanh(x); });
    case Activation::relu:
      return gated([](Floats x) { return relu(x); });
  }
}

template <class T>
void rotate(const T* in, const float* cosines, const float* sines, std::int64_t half, T* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Floats x = load(in + i);
    const Floats y = load(in + half + i);
    const Floats c = load(cosines + i);
    const Floats s = load(sines + i);
    store(out + i, x * c - y * s);
    store(out + half + i, y * c + x * s);
  }
  for (; i < half; ++i) {
    const float x = load_one(in + i);
    const float y = load_one(in + half + i);
    store_one(out + i, x * cosines[i] - y * sines[i]);
    store_one(out + half + i, y * cosines[i] + x * sines[i]);
  }
}

}  // namespace troupe::cpu::TROUPE_ISA
