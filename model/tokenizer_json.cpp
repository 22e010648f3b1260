#include "model/tokenizer_json.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/error_text.hpp"

namespace troupe {
namespace {

using nlohmann::json;

/// The deepest nesting of components that any tokenizer has is about 10.
constexpr std::size_t kMaxDepth = 64;

/// Receives a tokenizer.json as a stream of events: vocabulary and merges go where they belong, the rest into `rest`.
/// Returning false ends the parse; `error` then says why.
class Handler {
 public:
  explicit Handler(TokenizerJson& document) : document_(document) {}

  Error error;

  bool null() { return value(nullptr); }
  bool boolean(bool value_) { return value(value_); }
  bool number_integer(std::int64_t number) { return in_vocabulary_ ? add_token(number) : value(number); }
  bool number_unsigned(std::uint64_t number) {
    if (!in_vocabulary_) {
      return value(number);
    }
    constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return add_token(static_cast<std::int64_t>(std::min(number, max)));
  }
  bool number_float(double number, const std::string& /*text*/) { return value(number); }
  bool string(std::string& text) { return in_merges_ ? add_merge_part(text) : value(std::move(text)); }
  static bool binary(json::binary_t& /*bytes*/) { return false; }

  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t /*size*/) {
    if (at_model() && key_ == "vocab") {
      in_vocabulary_ = value(json::object());
      return in_vocabulary_;
    }
    return open(json::object());
  }
  bool end_object() {
    if (in_vocabulary_) {
      in_vocabulary_ = false;
      return true;
    }
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    if (at_model() && key_ == "merges") {
      in_merges_ = value(json::array());
      return in_merges_;
    }
    if (in_merges_ && !in_pair_) {
      in_pair_ = true;
      pair_.clear();
      return true;
    }
    return open(json::array());
  }
  bool end_array() {
    if (in_pair_) {
      in_pair_ = false;
      if (pair_.size() != 2) {
        return refuse(merge_pointer(), "expected two parts, found " + std::to_string(pair_.size()));
      }
      document_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      return true;
    }
    if (in_merges_) {
      in_merges_ = false;
      return true;
    }
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*last_token*/, const json::exception& exception) {
    std::string_view message = exception.what();
    // Behind nlohmann's own "[json.exception...] ".
    message.remove_prefix(std::min(message.size(), message.find("] ") + 2));
    return refuse("byte " + std::to_string(position), "not valid JSON: " + in_quotes(message));
  }

 private:
  /// Whether the next value is a field of `/model`.
  [[nodiscard]] bool at_model() const {
    return open_.size() == 2 && !in_vocabulary_ && !in_merges_ && open_[0]->is_object() && open_[1]->is_object() &&
           open_[0]->find("model") != open_[0]->end() && &open_[0]->at("model") == open_[1];
  }
  [[nodiscard]] std::string merge_pointer() const { return "/model/merges/" + std::to_string(document_.merges.size()); }

  bool refuse(const std::string& place, const std::string& message) {
    error = {.code = ErrorCode::malformed_file, .message = place + ": " + message};
    return false;
  }

  bool add_token(std::int64_t id) {
    const std::string pointer = "/model/vocab: " + in_quotes(key_);
    const auto added = document_.vocabulary.add(std::move(key_), id);
    return added || refuse(pointer, added.error().message);
  }

  bool add_merge_part(std::string& text) {
    if (in_pair_) {
      pair_.push_back(std::move(text));
      return true;
    }
    if (document_.merges.empty() && text.starts_with("#version")) {
      return true;
    }
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return refuse(merge_pointer(), "expected two parts with one space between them, found " + in_quotes(text));
    }
    document_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  bool value(json content) { return insert(std::move(content)) != nullptr; }

  bool open(json container) {
    if (open_.size() == kMaxDepth) {
      return refuse("/", "more than " + std::to_string(kMaxDepth) + " levels of nesting");
    }
    json* inserted = insert(std::move(container));
    open_.push_back(inserted);
    return inserted != nullptr;
  }

  /// Puts a value into the open container; null if it is not allowed here.
  json* insert(json content) {
    if (in_vocabulary_) {
      refuse("/model/vocab: " + in_quotes(key_), std::string("expected an integer, found ") + content.type_name());
      return nullptr;
    }
    if (in_merges_) {
      refuse(merge_pointer(), std::string("expected a string or a pair of strings, found ") + content.type_name());
      return nullptr;
    }
    if (open_.empty()) {
      document_.rest = std::move(content);
      return &document_.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(content));
      return &parent.back();
    }
    const auto [field, inserted] = parent.emplace(key_, std::move(content));
    if (!inserted) {
      refuse("/", "the key " + in_quotes(key_) + " occurs twice in one object");
      return nullptr;
    }
    return &*field;
  }

  TokenizerJson& document_;
  /// Containers that are not closed yet, the outermost first. Only the innermost one grows, so they stay where they
  /// are.
  std::vector<json*> open_;
  std::string key_;
  std::vector<std::string> pair_;
  bool in_vocabulary_ = false;
  bool in_merges_ = false;
  bool in_pair_ = false;
};

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  TokenizerJson document;
  Handler handler(document);
  if (!json::sax_parse(text, &handler)) {
    return tl::unexpected(std::move(handler.error));
  }
  return document;
}

}  // namespace troupe
