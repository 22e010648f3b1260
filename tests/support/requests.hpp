#pragma once

/// Requests for tests of the control plane.

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/request.hpp"
#include "cache/error.hpp"

namespace troupe::test {

/// `count` consecutive tokens, from `first` on.
inline std::vector<TokenId> tokens_from(TokenId first, std::int32_t count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline Request make_request(std::string id, std::vector<TokenId> prompt, std::optional<std::int32_t> max_new_tokens) {
  Request request;
  request.id = std::move(id);
  request.prompt_ids = std::move(prompt);
  request.max_new_tokens = max_new_tokens;
  return request;
}

/// The message of a result's error, or "" if there is none: `CHECK(error_of(x) == "")` shows what is wrong.
template <class T>
std::string error_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

/// `ErrorCode::none` if there is no error.
template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode::none : result.error().code;
}

}  // namespace troupe::test
