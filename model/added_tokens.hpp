#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/types.hpp"
#include "model/regex.hpp"

namespace troupe {

/// A token that is found in the text as it is, before any splitting and merging.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  /// Only where no word character touches it.
  bool single_word = false;
  /// Whether it swallows the white space before it.
  bool lstrip = false;
  /// Whether it swallows the white space after it.
  bool rstrip = false;
  /// Whether it is looked for in normalized text, itself normalized.
  bool normalized = true;
  /// Whether decoding may skip it.
  bool special = false;
};

/// Finds added tokens: leftmost first, the longest of those that start there.
class AddedTokenMatcher {
 public:
  /// Adds a token under the spelling that is to be found, which may differ from its content and must not be empty.
  /// The first token of a spelling wins.
  void add(std::string_view spelling, const AddedToken& token);

  struct Segment {
    TextSpan span;
    /// Set for an added token.
    std::optional<TokenId> token;
  };
  /// Cuts `text` into added tokens and what lies between them.
  [[nodiscard]] std::vector<Segment> split(std::string_view text) const;

 private:
  struct Match {
    std::size_t size = 0;
    const AddedToken* token = nullptr;
  };
  [[nodiscard]] Match longest_match(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  /// Trie over bytes: (node << 8 | byte) to the next node. Node 0 is the root.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  /// Index into `tokens_` of the token that ends at a node, -1 for none.
  std::vector<std::int32_t> ends_ = {-1};
  std::array<bool, 256> starts_{};
};

}  // namespace troupe
