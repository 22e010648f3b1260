#include "actors/request_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace troupe {
namespace {

Error wrong(std::string_view field, std::string_view expected, const std::string& found) {
  return Error{ErrorCode::invalid_request,
               std::string(field) + " must be " + std::string(expected) + ", but is " + found};
}

Result<void> check_token_ids(std::string_view field, std::span<const TokenId> ids, std::int32_t vocab_size) {
  const auto outside = std::ranges::find_if(ids, [=](TokenId id) { return id < 0 || id >= vocab_size; });
  if (outside == ids.end()) {
    return {};
  }
  return tl::unexpected<Error>(wrong(std::string(field) + "[" + std::to_string(outside - ids.begin()) + "]",
                                     "in [0, " + std::to_string(vocab_size) + ")", std::to_string(*outside)));
}

}  // namespace

Result<void> check_sampling(const SamplingParams& sampling) {
  // Comparisons are written so that NaN fails them.
  if (!(sampling.temperature >= 0.0F && std::isfinite(sampling.temperature))) {
    return tl::unexpected<Error>(
        wrong("sampling.temperature", "finite and not negative", std::to_string(sampling.temperature)));
  }
  if (sampling.top_k < -1) {
    return tl::unexpected<Error>(
        wrong("sampling.top_k", "at least 1, or 0 or -1 for all tokens", std::to_string(sampling.top_k)));
  }
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F)) {
    return tl::unexpected<Error>(wrong("sampling.top_p", "in (0, 1]", std::to_string(sampling.top_p)));
  }
  if (!(sampling.min_p >= 0.0F && sampling.min_p <= 1.0F)) {
    return tl::unexpected<Error>(wrong("sampling.min_p", "in [0, 1]", std::to_string(sampling.min_p)));
  }
  return {};
}

Result<void> check_request(const Request& request, const ModelDescription& model, const LengthLimits& limits) {
  if (request.prompt_ids.empty()) {
    return fail(ErrorCode::invalid_request, "prompt_ids must have at least 1 token, but is empty");
  }
  if (request.max_new_tokens && *request.max_new_tokens < 1) {
    return tl::unexpected<Error>(wrong("max_new_tokens", "at least 1", std::to_string(*request.max_new_tokens)));
  }
  if (request.prompt_ids.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    return fail(ErrorCode::request_too_long,
                "prompt_ids has " + std::to_string(request.prompt_ids.size()) + " tokens, more than can be counted");
  }
  if (Result<void> checked = check_token_ids("prompt_ids", request.prompt_ids, model.vocab_size); !checked) {
    return checked;
  }
  if (request.eos_token_ids) {
    if (Result<void> checked = check_token_ids("eos_token_ids", *request.eos_token_ids, model.vocab_size); !checked) {
      return checked;
    }
  }
  if (Result<void> checked = check_sampling(request.sampling); !checked) {
    return checked;
  }
  return resolve_total_length(static_cast<std::int32_t>(request.prompt_ids.size()), request.max_new_tokens, limits)
      .map([](std::int32_t) {});
}

Result<std::int32_t> resolve_total_length(std::int32_t prompt_length, std::optional<std::int32_t> max_new_tokens,
                                          const LengthLimits& limits) {
  const std::int64_t cache_limit = std::int64_t{limits.cache} + 1;
  const bool context_is_shorter = limits.context <= cache_limit;
  const std::int64_t longest = context_is_shorter ? limits.context : cache_limit;
  const std::int64_t wanted = std::int64_t{prompt_length} + max_new_tokens.value_or(1);
  if (wanted > longest) {
    return fail(ErrorCode::request_too_long,
                "prompt_ids (" + std::to_string(prompt_length) + " tokens) and max_new_tokens (" +
                    (max_new_tokens ? std::to_string(*max_new_tokens) : "none given, at least 1") + ") are " +
                    std::to_string(wanted) + " tokens together, but " +
                    (context_is_shorter ? "the model's context" : "what fits in the cache") + " ends at " +
                    std::to_string(longest));
  }
  return static_cast<std::int32_t>(max_new_tokens ? wanted : longest);
}

}  // namespace troupe
