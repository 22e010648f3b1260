#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace troupe::jinja {

/// Why a template could not be parsed or rendered.
struct Fault {
  std::string message;
  /// Line of the template, from 1; 0 while it is not known.
  int line = 0;
  /// Whether the template itself raised it (raise_exception).
  bool raised = false;
};

template <class T>
using Outcome = tl::expected<T, Fault>;

[[nodiscard]] inline tl::unexpected<Fault> fault(std::string message, int line = 0) {
  return tl::unexpected<Fault>(Fault{std::move(message), line, false});
}

/// Hands the fault of a failed outcome on to an outcome of another type.
template <class T>
[[nodiscard]] tl::unexpected<Fault> pass(Outcome<T>& failed) {
  return tl::unexpected<Fault>(std::move(failed.error()));
}

}  // namespace troupe::jinja
