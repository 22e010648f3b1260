#include "cache/error.hpp"

namespace troupe {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::none:
      return "none";
    case ErrorCode::invalid_request:
      return "invalid_request";
    case ErrorCode::request_too_long:
      return "request_too_long";
    case ErrorCode::duplicate_id:
      return "duplicate_id";
    case ErrorCode::overloaded:
      return "overloaded";
    case ErrorCode::unknown_request:
      return "unknown_request";
    case ErrorCode::out_of_blocks:
      return "out_of_blocks";
    case ErrorCode::io_error:
      return "io_error";
    case ErrorCode::malformed_file:
      return "malformed_file";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::step_failed:
      return "step_failed";
    case ErrorCode::shutting_down:
      return "shutting_down";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace troupe
