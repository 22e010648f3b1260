#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "model/dequantize.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using test::bytes_of;
using test::raw;

const std::vector<DType> quantized = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                      DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k};

/// Blocks and their values as gguf-py sees them.
struct Recorded {
  std::string blocks;
  std::vector<std::uint32_t> bits;

  explicit Recorded(DType type) {
    const std::string stem = std::string(TROUPE_TEST_DATA) + "/gguf/" + std::string(to_string(type));
    blocks = test::read_file(stem + ".blocks");
    const std::string values = test::read_file(stem + ".f32");
    bits.resize(values.size() / 4);
    std::memcpy(bits.data(), values.data(), values.size());
  }
};

/// Rounds with `std::nearbyint`, which rounds ties to even: not the way of the code under test.
std::uint16_t round_to_bf16(float value) {
  const int exponent = value == 0.0F ? 0 : std::max(std::ilogb(value), -126) - 7;
  const auto rounded = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(double{value}, -exponent)), exponent));
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(std::copysign(rounded, value)) >> 16U);
}

TEST_CASE("quantized blocks give the values of gguf-py bit by bit") {
  for (const DType type : quantized) {
    CAPTURE(to_string(type));
    const Recorded recorded(type);
    REQUIRE(recorded.bits.size() == 2048);
    std::vector<float> values(recorded.bits.size());
    convert_to_f32(type, bytes_of(recorded.blocks), values);
    std::size_t differences = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      differences += std::bit_cast<std::uint32_t>(values[i]) == recorded.bits[i] ? 0 : 1;
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("quantized blocks become the bfloat16 nearest to their values") {
  for (const DType type : quantized) {
    CAPTURE(to_string(type));
    const Recorded recorded(type);
    std::vector<std::uint16_t> values(recorded.bits.size());
    convert_to_bf16(type, bytes_of(recorded.blocks), values);
    std::size_t differences = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      differences += values[i] == round_to_bf16(std::bit_cast<float>(recorded.bits[i])) ? 0 : 1;
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("every half-precision number becomes the same single-precision number") {
  std::size_t differences = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = 0.0F;
    convert_to_f32(DType::f16, bytes_of(raw(static_cast<std::uint16_t>(bits))), std::span(&value, 1));
    const auto exponent = static_cast<int>((bits >> 10U) & 31U);
    const auto mantissa = static_cast<float>(bits & 1023U);
    float expected = exponent == 0   ? std::ldexp(mantissa, -24)
                     : exponent < 31 ? std::ldexp(1024.0F + mantissa, exponent - 25)
                     : mantissa == 0 ? INFINITY
                                     : NAN;
    expected = std::copysign(expected, bits < 0x8000 ? 1.0F : -1.0F);
    const bool same = std::isnan(expected)
                          ? std::isnan(value)
                          : std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(expected);
    differences += same ? 0 : 1;
  }
  CHECK(differences == 0);
}

TEST_CASE("rounding to bfloat16 goes to the nearest and from the middle to the even one") {
  const std::vector<std::pair<std::uint32_t, std::uint16_t>> cases = {
      {0x3F800000, 0x3F80}, {0x3F807FFF, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F808001, 0x3F81}, {0x3F818000, 0x3F82},
      {0xBF808000, 0xBF80}, {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x00008000, 0x0000}, {0x00018000, 0x0002},
      {0x7F7FFFFF, 0x7F80}, {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80},
  };
  for (const auto& [bits, expected] : cases) {
    CAPTURE(bits);
    std::uint16_t value = 0;
    convert_to_bf16(DType::f32, bytes_of(raw(bits)), std::span(&value, 1));
    CHECK(value == expected);
  }
  std::uint16_t nan = 0;
  convert_to_bf16(DType::f32, bytes_of(raw(std::uint32_t{0x7F800001})), std::span(&nan, 1));
  CHECK((nan & 0x7FFFU) > 0x7F80U);
}

TEST_CASE("half precision and bfloat16 sources become bfloat16") {
  std::uint16_t value = 0;
  convert_to_bf16(DType::f16, bytes_of(raw(std::uint16_t{0x3C00})), std::span(&value, 1));
  CHECK(value == 0x3F80);
  convert_to_bf16(DType::bf16, bytes_of(raw(std::uint16_t{0x1234})), std::span(&value, 1));
  CHECK(value == 0x1234);
  float wide = 0.0F;
  convert_to_f32(DType::bf16, bytes_of(raw(std::uint16_t{0x3F81})), std::span(&wide, 1));
  CHECK(std::bit_cast<std::uint32_t>(wide) == 0x3F810000U);
}

TEST_CASE("sizes of tensors are computed without overflow") {
  using Shape = std::vector<std::int64_t>;
  CHECK(byte_count(DType::f32, Shape{}) == 4);
  CHECK(byte_count(DType::q4_k, Shape{3, 512}) == 3 * 2 * 144);
  CHECK(byte_count(DType::f16, Shape{0, 5}) == 0);
  CHECK(byte_count(DType::q8_0, Shape{4, 48}) == std::nullopt);
  CHECK(byte_count(DType::f32, Shape{-1}) == std::nullopt);
  CHECK(byte_count(DType::f32, Shape{std::int64_t{1} << 61U}) == std::nullopt);
  CHECK(element_count(Shape{std::int64_t{1} << 32U, std::int64_t{1} << 32U}) == std::nullopt);
  CHECK(element_count(Shape{std::int64_t{1} << 32U, std::int64_t{1} << 32U, 0}) == 0);
}

}  // namespace
}  // namespace troupe
