#include "model/bpe.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "model/error_text.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

std::uint64_t pair_key(TokenId left, TokenId right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) | static_cast<std::uint32_t>(right);
}

std::string byte_token(unsigned byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4U] + digits[byte & 15U] + '>';
}

}  // namespace

Result<std::vector<BpeMerge>> ranked_merges(const Vocabulary& vocabulary,
                                            std::span<const std::pair<std::string, std::string>> merges) {
  std::vector<BpeMerge> ranked;
  ranked.reserve(merges.size());
  for (const auto& [left, right] : merges) {
    const auto number = std::to_string(ranked.size());
    const auto missing = [&](const std::string& what, const std::string& token) {
      return fail(ErrorCode::malformed_file,
                  number + ": " + what + " " + in_quotes(token) + " is not in the vocabulary");
    };
    const auto left_id = vocabulary.find(left);
    const auto right_id = vocabulary.find(right);
    if (!left_id || !right_id) {
      return missing("part", left_id ? right : left);
    }
    const auto result = vocabulary.find(left + right);
    if (!result) {
      return missing("result", left + right);
    }
    ranked.push_back(
        {.left = *left_id, .right = *right_id, .result = *result, .rank = static_cast<std::int32_t>(ranked.size())});
  }
  return ranked;
}

std::vector<BpeMerge> scored_merges(const Vocabulary& vocabulary, std::span<const float> scores,
                                    const std::vector<bool>& mergeable) {
  std::vector<TokenId> by_score(scores.size());
  std::iota(by_score.begin(), by_score.end(), 0);
  std::stable_sort(by_score.begin(), by_score.end(), [&](TokenId a, TokenId b) { return scores[a] > scores[b]; });

  const auto find = [&](std::string_view part) {
    const auto id = vocabulary.find(part);
    return id && mergeable[*id] ? id : std::nullopt;
  };
  std::vector<BpeMerge> merges;
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < by_score.size(); ++i) {
    const TokenId id = by_score[i];
    if (i > 0 && scores[id] < scores[by_score[i - 1]]) {
      ++rank;
    }
    if (!mergeable[id]) {
      continue;
    }
    const std::string_view token = *vocabulary.token(id);
    for (std::size_t cut = first_code_point(token).size; cut < token.size();
         cut += first_code_point(token.substr(cut)).size) {
      const auto left = find(token.substr(0, cut));
      const auto right = find(token.substr(cut));
      if (left && right) {
        merges.push_back({.left = *left, .right = *right, .result = id, .rank = rank});
      }
    }
  }
  return merges;
}

Bpe::Bpe(std::shared_ptr<const Vocabulary> vocabulary, std::span<const BpeMerge> merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  merges_.reserve(merges.size());
  for (const BpeMerge& merge : merges) {
    merges_.insert_or_assign(pair_key(merge.left, merge.right), Merged{.rank = merge.rank, .result = merge.result});
  }
  for (std::size_t code_point = 0; code_point < characters_.size(); ++code_point) {
    std::string character;
    append_utf8(character, static_cast<char32_t>(code_point));
    characters_[code_point] = vocabulary_->find(character).value_or(-1);
  }
  for (unsigned byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = vocabulary_->find(byte_token(byte)).value_or(-1);
  }
}

void Bpe::encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& tokens) const {
  if (options_.ignore_merges) {
    if (const auto whole = vocabulary_->find(piece)) {
      tokens.push_back(*whole);
      return;
    }
  }
  split_into_symbols(piece, workspace);
  merge_all(workspace);
  for (const auto& symbol : workspace.symbols_) {
    if (symbol.token >= 0) {
      tokens.push_back(symbol.token);
    }
  }
}

std::optional<TokenId> Bpe::find_character(std::string_view character, char32_t code_point) const {
  if (code_point < characters_.size()) {
    const TokenId token = characters_[code_point];
    return token < 0 ? std::nullopt : std::optional(token);
  }
  return vocabulary_->find(character);
}

bool Bpe::append_bytes(std::string_view character, Workspace& workspace) const {
  const auto token_of = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(character.begin(), character.end(), [&](char byte) { return token_of(byte) < 0; })) {
    return false;
  }
  for (const char byte : character) {
    workspace.symbols_.push_back({.token = token_of(byte)});
  }
  return true;
}

void Bpe::split_into_symbols(std::string_view piece, Workspace& workspace) const {
  auto& symbols = workspace.symbols_;
  symbols.clear();
  // As in tokenizers, an unknown token is written when the next known character or the end of the piece comes: behind
  // the bytes that a fallback wrote meanwhile.
  bool pending_unknown = false;
  const auto flush_unknown = [&] {
    if (pending_unknown) {
      symbols.push_back({.token = *options_.unknown});
      pending_unknown = false;
    }
  };
  while (!piece.empty()) {
    const CodePoint point = first_code_point(piece);
    const std::string_view character = piece.substr(0, point.size);
    piece.remove_prefix(point.size);
    if (const auto token = find_character(character, point.value)) {
      flush_unknown();
      symbols.push_back({.token = *token});
    } else if (options_.byte_fallback && append_bytes(character, workspace)) {
      continue;
    } else if (options_.unknown) {
      if (!options_.fuse_unknown) {
        flush_unknown();
      }
      pending_unknown = true;
    }
  }
  flush_unknown();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = static_cast<std::int32_t>(i) + 1;
  }
}

const Bpe::Merged* Bpe::find_merge(TokenId left, TokenId right) const {
  const auto entry = merges_.find(pair_key(left, right));
  return entry == merges_.end() ? nullptr : &entry->second;
}

void Bpe::push_candidate(Workspace& workspace, std::int32_t position) const {
  const auto& symbols = workspace.symbols_;
  const auto& left = symbols[position];
  if (const Merged* merge = find_merge(left.token, symbols[left.next].token)) {
    workspace.queue_.push_back({.rank = merge->rank, .position = position, .result = merge->result});
  }
}

void Bpe::merge_all(Workspace& workspace) const {
  auto& symbols = workspace.symbols_;
  auto& queue = workspace.queue_;
  const auto count = static_cast<std::int32_t>(symbols.size());
  queue.clear();
  for (std::int32_t i = 0; i + 1 < count; ++i) {
    push_candidate(workspace, i);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto push = [&](std::int32_t position) {
    const std::size_t size = queue.size();
    push_candidate(workspace, position);
    if (queue.size() > size) {
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const Workspace::Candidate best = queue.back();
    queue.pop_back();
    auto& left = symbols[best.position];
    if (left.token < 0 || left.next == count) {
      continue;
    }
    auto& right = symbols[left.next];
    const Merged* merge = find_merge(left.token, right.token);
    if (merge == nullptr || merge->result != best.result) {
      continue;  // a neighbour changed since the candidate was queued
    }
    left.token = best.result;
    left.next = right.next;
    right.token = -1;
    if (left.next < count) {
      symbols[left.next].previous = best.position;
      push(best.position);
    }
    if (left.previous >= 0) {
      push(left.previous);
    }
  }
}

}  // namespace troupe
