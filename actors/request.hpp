#pragma once

/// What a client asks and what it gets back; free of CAF and LibTorch types.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/types.hpp"

namespace troupe {

/// One generation request.
struct Request {
  /// Chosen by the client, unique among the requests in flight; the engine makes one up ("req_<n>") if it is empty.
  std::string id;
  /// At least one token, each in [0, vocab_size).
  std::vector<TokenId> prompt_ids;
  /// At least 1; absent means up to the model's context or the cache, whichever is shorter.
  std::optional<std::int32_t> max_new_tokens;
  /// Tokens that end the output (they are part of it); absent means the model's.
  std::optional<std::vector<TokenId>> eos_token_ids;
  /// Go on after an end-of-sequence token.
  bool ignore_eos = false;
  /// `sampling.seed` is the request's own: its tokens depend on nothing else.
  SamplingParams sampling;
  /// Send tokens as they come instead of all at the end.
  bool streaming = false;
  /// Whether this request may use and leave cached prefixes.
  bool prefix_sharing = true;
};

/// Why a request ended.
enum class FinishReason : std::uint8_t {
  /// It goes on.
  none,
  /// An end-of-sequence token was sampled; it is the last token of the output.
  stop,
  /// `max_new_tokens`, the model's context or the cache's capacity was reached.
  length,
  cancelled,
  failed,
};

[[nodiscard]] std::string_view to_string(FinishReason reason) noexcept;

/// Tokens of a request since the previous output. The last one has `reason != none`; nothing follows it, and every
/// accepted request gets exactly one such.
struct RequestOutput {
  std::string id;
  std::vector<TokenId> token_ids;
  /// One for each of `token_ids` if the request asked for them.
  std::vector<float> logprobs;
  FinishReason reason = FinishReason::none;
  /// Set if and only if `reason` is `failed`.
  Error error;
  std::int32_t prompt_tokens = 0;
  /// Prompt tokens whose keys and values came from the cache instead of being computed.
  std::int32_t cached_tokens = 0;
};

/// What a fork changes for its children; absent fields are inherited.
struct ForkOverrides {
  std::optional<SamplingParams> sampling;
  std::optional<std::int32_t> max_new_tokens;
};

}  // namespace troupe
