#include "model/weight_source.hpp"

namespace troupe {

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

}  // namespace troupe
