#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"
#include "model/vocabulary.hpp"

namespace troupe {

/// Two neighbouring tokens that become one. Lower ranks go first, equal ranks from left to right.
struct BpeMerge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
  std::int32_t rank = 0;
};

/// Merges by the spelling of their two parts, in order of rank.
/// Errors, starting with the merge's number: a part or the result is not in the vocabulary.
[[nodiscard]] Result<std::vector<BpeMerge>> ranked_merges(const Vocabulary& vocabulary,
                                                          std::span<const std::pair<std::string, std::string>> merges);

/// SentencePiece's merges: whatever two of the `mergeable` tokens together spell a third, the highest score first.
/// `scores` and `mergeable` are by id.
[[nodiscard]] std::vector<BpeMerge> scored_merges(const Vocabulary& vocabulary, std::span<const float> scores,
                                                  const std::vector<bool>& mergeable);

struct BpeOptions {
  /// Stands for a character that is not in the vocabulary; without it such characters are dropped.
  std::optional<TokenId> unknown;
  /// Whether unknown characters in a row are one unknown token.
  bool fuse_unknown = false;
  /// Whether a character that is not in the vocabulary becomes tokens "<0x00>" to "<0xFF>", if there are all it needs.
  bool byte_fallback = false;
  /// Whether a piece that is a token needs no merges to become it.
  bool ignore_merges = false;
};

/// Byte pair encoding of one piece at a time (Sennrich et al. 2016, arXiv:1508.07909), with the choices of Hugging
/// Face's tokenizers. Thread-safe.
class Bpe {
 public:
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, std::span<const BpeMerge> merges, BpeOptions options);

  /// Memory that pieces encoded one after another share.
  class Workspace {
    friend class Bpe;

    struct Symbol {
      /// -1 once it is merged into its left neighbour.
      TokenId token = 0;
      std::int32_t previous = 0;
      /// The number of symbols for the last one.
      std::int32_t next = 0;
    };
    struct Candidate {
      std::int32_t rank = 0;
      std::int32_t position = 0;
      TokenId result = 0;

      friend bool operator>(const Candidate& a, const Candidate& b) {
        return std::pair(a.rank, a.position) > std::pair(b.rank, b.position);
      }
    };
    std::vector<Symbol> symbols_;
    std::vector<Candidate> queue_;
  };

  /// Appends the tokens of `piece`, valid UTF-8 of less than 2^31 code points.
  void encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& tokens) const;

 private:
  struct Merged {
    std::int32_t rank = 0;
    TokenId result = 0;
  };
  void split_into_symbols(std::string_view piece, Workspace& workspace) const;
  [[nodiscard]] std::optional<TokenId> find_character(std::string_view character, char32_t code_point) const;
  [[nodiscard]] bool append_bytes(std::string_view character, Workspace& workspace) const;
  [[nodiscard]] const Merged* find_merge(TokenId left, TokenId right) const;
  void merge_all(Workspace& workspace) const;
  void push_candidate(Workspace& workspace, std::int32_t position) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  BpeOptions options_;
  /// By (left << 32 | right).
  std::unordered_map<std::uint64_t, Merged> merges_;
  /// The tokens of the first code points, which covers the byte-level alphabet; -1 for none.
  std::array<TokenId, 0x200> characters_{};
  /// Tokens "<0x00>" to "<0xFF>"; -1 for none.
  std::array<TokenId, 256> bytes_{};
};

}  // namespace troupe
