#include "model/added_tokens.hpp"

#include "model/unicode.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

/// Start of the last code point of `text`, which is not empty.
std::size_t last_code_point(std::string_view text) {
  std::size_t position = text.size() - 1;
  while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xC0U) == 0x80U) {
    --position;
  }
  return position;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(first_code_point(text.substr(last_code_point(text))).value);
}

bool starts_with_word(std::string_view text) { return !text.empty() && is_word(first_code_point(text).value); }

/// Where the white space at the end of `text` begins.
std::size_t trailing_space(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = last_code_point(text);
    if (!is_white_space(first_code_point(text.substr(last)).value)) {
      break;
    }
    text = text.substr(0, last);
  }
  return text.size();
}

/// Size of the white space at the start of `text`.
std::size_t leading_space(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const CodePoint point = first_code_point(text.substr(size));
    if (!is_white_space(point.value)) {
      break;
    }
    size += point.size;
  }
  return size;
}

}  // namespace

void AddedTokenMatcher::add(std::string_view spelling, const AddedToken& token) {
  std::uint32_t node = 0;
  for (const char byte : spelling) {
    const std::uint64_t key = (std::uint64_t{node} << 8U) | static_cast<unsigned char>(byte);
    const auto [edge, inserted] = edges_.try_emplace(key, static_cast<std::uint32_t>(ends_.size()));
    if (inserted) {
      ends_.push_back(-1);
    }
    node = edge->second;
  }
  starts_[static_cast<unsigned char>(spelling.front())] = true;
  if (ends_[node] < 0) {
    ends_[node] = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_match(std::string_view text) const {
  Match match;
  std::uint32_t node = 0;
  for (std::size_t size = 0; size < text.size();) {
    const auto edge = edges_.find((std::uint64_t{node} << 8U) | static_cast<unsigned char>(text[size]));
    if (edge == edges_.end()) {
      break;
    }
    node = edge->second;
    ++size;
    if (ends_[node] >= 0) {
      match = {.size = size, .token = &tokens_[ends_[node]]};
    }
  }
  return match;
}

std::vector<AddedTokenMatcher::Segment> AddedTokenMatcher::split(std::string_view text) const {
  std::vector<Segment> segments;
  std::size_t done = 0;
  for (std::size_t position = 0; position < text.size();) {
    Match match;
    if (starts_[static_cast<unsigned char>(text[position])]) {
      match = longest_match(text.substr(position));
    }
    if (match.token == nullptr) {
      ++position;
      continue;
    }
    std::size_t begin = position;
    std::size_t end = position + match.size;
    position = end;
    const AddedToken& token = *match.token;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) {
      begin = begin > done ? done + trailing_space(text.substr(done, begin - done)) : done;
    }
    if (token.rstrip) {
      end += leading_space(text.substr(end));
    }
    if (done < begin) {
      segments.push_back({.span = {.begin = done, .end = begin}, .token = std::nullopt});
    }
    segments.push_back({.span = {.begin = begin, .end = end}, .token = token.id});
    done = end;
  }
  if (done < text.size()) {
    segments.push_back({.span = {.begin = done, .end = text.size()}, .token = std::nullopt});
  }
  return segments;
}

}  // namespace troupe
