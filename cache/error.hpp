#pragma once

/// Errors are values in troupe. Everything that can fail outside of an actor returns a `Result`; between actors the
/// same error travels as a `caf::error` with the same code (see actors/messages.hpp).

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace troupe {

/// What went wrong. Values are part of the wire format: append, never renumber.
enum class ErrorCode : std::uint8_t {
  /// Nothing went wrong.
  none = 0,
  /// A request has a field that no engine could serve (empty prompt, token out of range, bad parameter).
  invalid_request = 1,
  /// A request is longer than the cache or the model's context can ever hold.
  request_too_long = 2,
  /// A request's id is already in use.
  duplicate_id = 3,
  /// The waiting queue is full.
  overloaded = 4,
  /// No request with that id is known.
  unknown_request = 5,
  /// Not enough free blocks; nothing was changed.
  out_of_blocks = 6,
  /// A file is missing or cannot be read.
  io_error = 7,
  /// A file's content is malformed or does not match what it must hold.
  malformed_file = 8,
  /// A model, tensor type or feature that is well-formed but not supported.
  unsupported = 9,
  /// The executor failed while it ran a step.
  step_failed = 10,
  /// The engine is shutting down or has ended.
  shutting_down = 11,
  /// Bookkeeping is broken: a bug in troupe, never the caller's fault.
  internal = 12,
};

/// Returns the enumerator's name, e.g. "out_of_blocks".
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// An error code with a message that names the thing, what was expected and what was found.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::none;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

/// Either a value or an `Error`.
template <class T>
using Result = tl::expected<T, Error>;

/// Returns the unexpected half of a `Result`.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace troupe
