#include "model/vocabulary.hpp"

#include <utility>

#include "model/error_text.hpp"

namespace troupe {

Result<void> Vocabulary::add(std::string token, std::int64_t id) {
  if (id < 0 || id >= kMaxTokens) {
    return fail(ErrorCode::malformed_file,
                "expected an id from 0 to " + std::to_string(kMaxTokens - 1) + ", found " + std::to_string(id));
  }
  const auto index = static_cast<std::size_t>(id);
  if (index < tokens_.size() && tokens_[index] != nullptr) {
    return fail(ErrorCode::malformed_file,
                "id " + std::to_string(id) + " already belongs to " + in_quotes(*tokens_[index]));
  }
  const auto [entry, inserted] = ids_.try_emplace(std::move(token), static_cast<TokenId>(id));
  if (!inserted) {
    return fail(ErrorCode::malformed_file,
                "the token has two ids, " + std::to_string(entry->second) + " and " + std::to_string(id));
  }
  if (index >= tokens_.size()) {
    tokens_.resize(index + 1);
  }
  tokens_[index] = &entry->first;
  return {};
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto entry = ids_.find(token);
  return entry == ids_.end() ? std::nullopt : std::optional(entry->second);
}

const std::string* Vocabulary::token(TokenId id) const {
  return id >= 0 && id < size() ? tokens_[static_cast<std::size_t>(id)] : nullptr;
}

}  // namespace troupe
