#include "actors/request.hpp"

namespace troupe {

std::string_view to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::none:
      return "none";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace troupe
