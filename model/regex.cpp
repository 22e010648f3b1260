#include "model/regex.hpp"

#include <array>
#include <mutex>
#include <utility>

#include <oniguruma.h>

#include "model/error_text.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

const OnigUChar* bytes_of(std::string_view text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): Oniguruma's byte type
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string describe(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> buffer{};
  const int size =
      info == nullptr ? onig_error_code_to_str(buffer.data(), code) : onig_error_code_to_str(buffer.data(), code, info);
  return {buffer.data(), buffer.data() + size};
}

struct RegionDeleter {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  // Compiling initializes Oniguruma's tables and is not safe from several threads; searching is.
  static std::mutex compile_mutex;
  const std::lock_guard lock(compile_mutex);
  regex_t* compiled = nullptr;
  OnigErrorInfo info{};
  const OnigUChar* start = bytes_of(pattern);
  const int code =
      onig_new(&compiled, start, start + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (code != ONIG_NORMAL) {
    return fail(ErrorCode::malformed_file, "regular expression " + in_quotes(pattern) + ": " + describe(code, &info));
  }
  return Regex(std::shared_ptr<regex_t>(compiled, &onig_free));
}

Result<void> Regex::find_all(std::string_view text, std::vector<TextSpan>& matches) const {
  const std::unique_ptr<OnigRegion, RegionDeleter> region(onig_region_new());
  const OnigUChar* start = bytes_of(text);
  const OnigUChar* end = start + text.size();
  std::size_t position = 0;
  // No match ends here, not even an empty one.
  std::size_t last_end = std::string_view::npos;
  while (position <= text.size()) {
    const int found = onig_search(compiled_.get(), start, end, start + position, end, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH) {
      break;
    }
    if (found < 0) {
      return fail(ErrorCode::invalid_request, "text cannot be split: " + describe(found, nullptr));
    }
    const TextSpan match{.begin = static_cast<std::size_t>(region->beg[0]),
                         .end = static_cast<std::size_t>(region->end[0])};
    if (match.begin == match.end && match.end == last_end) {
      if (position == text.size()) {
        break;
      }
      position += first_code_point(text.substr(position)).size;
      continue;
    }
    matches.push_back(match);
    position = match.end;
    last_end = match.end;
  }
  return {};
}

Result<void> TextPattern::find_all(std::string_view text, std::vector<TextSpan>& matches) const {
  if (regex_ != nullptr) {
    return regex_->find_all(text, matches);
  }
  for (std::size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at)) {
    matches.push_back({.begin = at, .end = at + literal_.size()});
    at += literal_.size();
  }
  return {};
}

Result<void> TextPattern::replace_all(std::string& text, std::string_view content) const {
  std::vector<TextSpan> matches;
  if (auto found = find_all(text, matches); !found) {
    return found;
  }
  if (matches.empty()) {
    return {};
  }
  std::string replaced;
  replaced.reserve(text.size() + matches.size() * content.size());
  std::size_t copied = 0;
  for (const TextSpan& match : matches) {
    replaced.append(text, copied, match.begin - copied).append(content);
    copied = match.end;
  }
  replaced.append(text, copied);
  text = std::move(replaced);
  return {};
}

bool TextPattern::is_single_code_point() const {
  return regex_ == nullptr && first_code_point(literal_).size == literal_.size();
}

}  // namespace troupe
