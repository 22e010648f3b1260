#include "model/dtype.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 62U;

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0 || (b > 0 && a > kMaxCount / b)) {
    return std::nullopt;
  }
  return a * b;
}

}  // namespace

std::string_view to_string(DType type) noexcept {
  switch (type) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::q4_0:
      return "Q4_0";
    case DType::q4_1:
      return "Q4_1";
    case DType::q5_0:
      return "Q5_0";
    case DType::q5_1:
      return "Q5_1";
    case DType::q8_0:
      return "Q8_0";
    case DType::q4_k:
      return "Q4_K";
    case DType::q5_k:
      return "Q5_K";
    case DType::q6_k:
      return "Q6_K";
    case DType::other:
      break;
  }
  return "unsupported type";
}

DTypeLayout layout_of(DType type) noexcept {
  switch (type) {
    case DType::f32:
      return {.block_elements = 1, .block_bytes = 4};
    case DType::f16:
    case DType::bf16:
      return {.block_elements = 1, .block_bytes = 2};
    case DType::q4_0:
      return {.block_elements = 32, .block_bytes = 18};
    case DType::q4_1:
      return {.block_elements = 32, .block_bytes = 20};
    case DType::q5_0:
      return {.block_elements = 32, .block_bytes = 22};
    case DType::q5_1:
      return {.block_elements = 32, .block_bytes = 24};
    case DType::q8_0:
      return {.block_elements = 32, .block_bytes = 34};
    case DType::q4_k:
      return {.block_elements = 256, .block_bytes = 144};
    case DType::q5_k:
      return {.block_elements = 256, .block_bytes = 176};
    case DType::q6_k:
      return {.block_elements = 256, .block_bytes = 210};
    case DType::other:
      break;
  }
  return {};
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept {
  if (std::ranges::any_of(shape, [](std::int64_t dimension) { return dimension < 0; })) {
    return std::nullopt;
  }
  // A zero makes the whole zero, whatever the order of the dimensions.
  if (std::ranges::find(shape, 0) != shape.end()) {
    return 0;
  }
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t dimension : shape) {
    count = product(*count, dimension);
    if (!count) {
      break;
    }
  }
  return count;
}

std::optional<std::int64_t> byte_count(DType type, std::span<const std::int64_t> shape) noexcept {
  const std::optional<std::int64_t> elements = element_count(shape);
  const DTypeLayout layout = layout_of(type);
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (!elements || row % layout.block_elements != 0) {
    return std::nullopt;
  }
  return product(*elements / layout.block_elements, layout.block_bytes);
}

}  // namespace troupe
