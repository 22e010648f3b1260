#pragma once

/// The front door's checks: what passes them can be served by any step. Every error names the field, its limit and what
/// was found.

#include <cstdint>
#include <optional>

#include "actors/request.hpp"
#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/step_executor.hpp"

namespace troupe {

/// Longest sequences that an engine can serve, in tokens.
struct LengthLimits {
  /// Of the model, prompt and output together.
  std::int32_t context = 0;
  /// Tokens that fit in the empty cache. A sequence may have one more, for its last token is never fed.
  std::int32_t cache = 0;
};

/// Checks the parameters for values that no sampler can serve (`invalid_request`).
[[nodiscard]] Result<void> check_sampling(const SamplingParams& sampling);

/// Checks all but the id. Errors: `invalid_request`, `request_too_long`.
[[nodiscard]] Result<void> check_request(const Request& request, const ModelDescription& model,
                                         const LengthLimits& limits);

/// Returns the total length at which a request ends: with `max_new_tokens` it must be within the limits
/// (`request_too_long`), without it is the shorter one.
/// @param prompt_length At least 1.
[[nodiscard]] Result<std::int32_t> resolve_total_length(std::int32_t prompt_length,
                                                        std::optional<std::int32_t> max_new_tokens,
                                                        const LengthLimits& limits);

}  // namespace troupe
