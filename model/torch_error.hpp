#pragma once

#include <exception>
#include <string>

#include <c10/util/Exception.h>

namespace troupe {

/// What an exception says, without the backtrace that LibTorch appends.
[[nodiscard]] inline std::string describe_exception(const std::exception& exception) {
  const auto* const torch_error = dynamic_cast<const c10::Error*>(&exception);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : exception.what();
}

}  // namespace troupe
