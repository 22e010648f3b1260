#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Tokens and their ids, both ways. Filled in any order; ids may have gaps.
class Vocabulary {
 public:
  /// An order of magnitude more than any model has; keeps a hostile id from asking for gigabytes.
  static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 22U;

  Vocabulary() = default;
  // Moving keeps the addresses of the strings, copying does not.
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  ~Vocabulary() = default;

  /// Errors: an id outside [0, kMaxTokens), a token or an id that is there already.
  [[nodiscard]] Result<void> add(std::string token, std::int64_t id);

  /// Largest id + 1.
  [[nodiscard]] TokenId size() const { return static_cast<TokenId>(tokens_.size()); }
  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const;
  /// Null for an id without a token.
  [[nodiscard]] const std::string* token(TokenId id) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  /// By id: the keys of `ids_`.
  std::vector<const std::string*> tokens_;
};

}  // namespace troupe
