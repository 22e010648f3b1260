#include "model/json_file.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/error_text.hpp"
#include "model/mapped_file.hpp"

namespace troupe {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;

/// Watches a parse for what nlohmann's parser lets pass.
class Watcher {
 public:
  /// Returns whether to keep the value; nothing is kept once something is wrong.
  bool operator()(int depth, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= kMaxDepth) {
          note("expected at most " + std::to_string(kMaxDepth) + " levels of nesting, found more");
        }
        if (event == json::parse_event_t::object_start) {
          keys_.emplace_back();
        }
        break;
      case json::parse_event_t::key:
        if (const auto& key = value.get_ref<const std::string&>(); !keys_.back().insert(key).second) {
          note("the key " + in_quotes(key) + " occurs twice in one object");
        }
        break;
      case json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::array_end:
      case json::parse_event_t::value:
        break;
    }
    return !problem_;
  }

  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  void note(std::string problem) {
    if (!problem_) {
      problem_ = std::move(problem);
    }
  }

  /// The keys of each open object.
  std::vector<std::unordered_set<std::string>> keys_;
  std::optional<std::string> problem_;
};

/// nlohmann's message without its "[json.exception...] ", which says the same in numbers.
std::string message_of(const json::exception& exception) {
  std::string_view text = exception.what();
  if (const std::size_t end = text.find("] "); end != std::string_view::npos) {
    text.remove_prefix(end + 2);
  }
  constexpr std::size_t kMaxBytes = 200;
  std::string message;
  for (const char character : text.substr(0, kMaxBytes)) {
    message += character >= ' ' && character <= '~' ? character : '?';
  }
  return message;
}

}  // namespace

Result<json> parse_json(std::string_view text) {
  Watcher watcher;
  try {
    json document = json::parse(
        text, [&watcher](int depth, json::parse_event_t event, json& value) { return watcher(depth, event, value); });
    if (watcher.problem()) {
      return fail(ErrorCode::malformed_file, *watcher.problem());
    }
    return document;
  } catch (const json::exception& exception) {
    return fail(ErrorCode::malformed_file, watcher.problem().value_or("not valid JSON: " + message_of(exception)));
  }
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) {
    return tl::unexpected(file.error());
  }
  if (file->bytes().size() > max_bytes) {
    return fail(ErrorCode::malformed_file, path.string() + ": expected at most " + std::to_string(max_bytes) +
                                               " bytes, found " + std::to_string(file->bytes().size()));
  }
  return std::string(file->text());
}

Result<json> read_json_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const Result<std::string> text = read_text_file(path, max_bytes);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<json> document = parse_json(*text);
  if (!document) {
    return fail_in_file(path, document.error());
  }
  return document;
}

bool is_present(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
}

tl::unexpected<Error> fail_in_file(const std::filesystem::path& path, const Error& error) {
  return fail(error.code, path.string() + ": " + error.message);
}

}  // namespace troupe
