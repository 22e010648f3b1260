#include "model/jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/jinja/limits.hpp"
#include "model/jinja/unicode.hpp"

namespace troupe::jinja {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Line ends become "\n", and one at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    }
  }
  if (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

/// Longer symbols before their beginnings.
constexpr std::array<std::string_view, 25> kSymbols = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                                       "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                                       "]",  "{",  "}",  ",",  ":",  ".",  "|"};

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Outcome<std::vector<Token>> run() {
    while (position_ < source_.size()) {
      auto done = scan_text_and_tag();
      if (!done) {
        return pass(done);
      }
    }
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void skip_to(std::size_t position) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
    position_ = position;
  }

  [[nodiscard]] char at(std::size_t position) const { return position < source_.size() ? source_[position] : '\0'; }

  Outcome<void> scan_text_and_tag() {
    std::size_t open = position_;
    while (open < source_.size() &&
           !(source_[open] == '{' && (at(open + 1) == '{' || at(open + 1) == '%' || at(open + 1) == '#'))) {
      ++open;
    }
    if (open == source_.size()) {
      add_text(open, open);
      return {};
    }
    const char kind = at(open + 1);
    const char modifier = at(open + 2);
    add_text(open, end_of_text(open, kind != '{', modifier));
    skip_to(open + 2 + (modifier == '-' || modifier == '+' ? 1 : 0));
    if (kind == '#') {
      return scan_comment();
    }
    if (kind == '%') {
      auto raw = scan_raw();
      if (!raw || *raw) {
        return raw ? Outcome<void>() : pass(raw);
      }
    }
    add(kind == '%' ? Token::Kind::block_begin : Token::Kind::print_begin, "");
    return scan_tag(kind == '%' ? '%' : '}');
  }

  /// Where the text before a tag ends, white space that the tag takes left out.
  [[nodiscard]] std::size_t end_of_text(std::size_t open, bool strips_line, char modifier) const {
    std::size_t end = open;
    if (modifier == '-') {
      const std::string_view text = std::string_view(source_).substr(position_, open - position_);
      return position_ + strip_space(text, {false, true}).size();
    }
    if (!strips_line || modifier == '+') {
      return open;
    }
    while (end > position_ && is_blank(source_[end - 1]) && source_[end - 1] != '\n') {
      --end;
    }
    const bool at_line_start = end == position_ ? line_starting_ : source_[end - 1] == '\n';
    return at_line_start ? end : open;
  }

  /// @param next Where scanning goes on.
  void add_text(std::size_t next, std::size_t end) {
    if (end > position_) {
      add(Token::Kind::text, source_.substr(position_, end - position_));
    }
    skip_to(next);
  }

  /// Behind a tag: takes the white space that it trims.
  void trim_after(char modifier, bool trims_newline) {
    std::size_t end = position_;
    if (modifier == '-') {
      end = source_.size() - strip_space(std::string_view(source_).substr(end), {true, false}).size();
    } else if (modifier != '+' && trims_newline && at(end) == '\n') {
      ++end;
    }
    line_starting_ = end > position_ && source_[end - 1] == '\n';
    skip_to(end);
  }

  Outcome<void> scan_comment() {
    const std::size_t end = source_.find("#}", position_);
    if (end == kNone) {
      return fault("expected #} after {#, found the end of the template", line_);
    }
    const char modifier =
        end > position_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    skip_to(end + 2);
    trim_after(modifier, true);
    return {};
  }

  /// Where the tag ends that has `word` at `from` and nothing else, or npos.
  [[nodiscard]] std::size_t match_word_tag(std::size_t from, std::string_view word, char& modifier) const {
    std::size_t i = from;
    while (is_blank(at(i))) {
      ++i;
    }
    if (std::string_view(source_).substr(i, word.size()) != word) {
      return kNone;
    }
    i += word.size();
    while (is_blank(at(i))) {
      ++i;
    }
    modifier = at(i) == '-' || at(i) == '+' ? at(i) : '\0';
    i += modifier != '\0' ? 1 : 0;
    return at(i) == '%' && at(i + 1) == '}' ? i + 2 : kNone;
  }

  /// Takes {% raw %}...{% endraw %}; false if something else stands here.
  Outcome<bool> scan_raw() {
    char modifier = '\0';
    const std::size_t begin = match_word_tag(position_, "raw", modifier);
    if (begin == kNone) {
      return false;
    }
    const int first_line = line_;
    skip_to(begin);
    trim_after(modifier, false);
    for (std::size_t open = source_.find("{%", position_); open != kNone; open = source_.find("{%", open + 1)) {
      const char before = at(open + 2);
      const bool modified = before == '-' || before == '+';
      const std::size_t end = match_word_tag(open + (modified ? 3 : 2), "endraw", modifier);
      if (end != kNone) {
        add_text(end, end_of_text(open, true, before));
        trim_after(modifier, true);
        return true;
      }
    }
    return fault("expected {% endraw %}, found the end of the template", first_line);
  }

  /// @param closer '%' or '}', the first character of the tag's end.
  Outcome<void> scan_tag(char closer) {
    const int first_line = line_;
    std::string brackets;
    while (true) {
      while (position_ < source_.size() && is_blank(source_[position_])) {
        skip_to(position_ + 1);
      }
      if (position_ >= source_.size()) {
        return fault(std::string("expected the tag to end with ") + closer + "}, found the end of the template",
                     first_line);
      }
      const char c = source_[position_];
      const bool modified = (c == '-' || c == '+') && at(position_ + 1) == closer && at(position_ + 2) == '}';
      if (brackets.empty() && (modified || (c == closer && at(position_ + 1) == '}'))) {
        add(closer == '%' ? Token::Kind::block_end : Token::Kind::print_end, "");
        skip_to(position_ + (modified ? 3 : 2));
        trim_after(modified ? c : '\0', closer == '%');
        return {};
      }
      auto done = scan_token(brackets);
      if (!done) {
        return done;
      }
    }
  }

  Outcome<void> scan_token(std::string& brackets) {
    const char c = source_[position_];
    if (is_ascii_digit(c)) {
      scan_number();
      return {};
    }
    if (c == '"' || c == '\'') {
      return scan_string(c);
    }
    if (starts_name(c)) {
      std::size_t end = position_ + 1;
      while (end < source_.size() && (starts_name(source_[end]) || is_ascii_digit(source_[end]))) {
        ++end;
      }
      add(Token::Kind::name, source_.substr(position_, end - position_));
      skip_to(end);
      return {};
    }
    const auto* const symbol = std::find_if(kSymbols.begin(), kSymbols.end(), [this](std::string_view candidate) {
      return std::string_view(source_).substr(position_, candidate.size()) == candidate;
    });
    if (symbol == kSymbols.end()) {
      return fault(std::string("expected a name, value or operator, found the character '") + c + "'", line_);
    }
    if (*symbol == "(" || *symbol == "[" || *symbol == "{") {
      if (brackets.size() >= static_cast<std::size_t>(kMaxNesting)) {
        return fault("expected at most " + std::to_string(kMaxNesting) + " levels of brackets, found more", line_);
      }
      brackets += *symbol == "(" ? ')' : *symbol == "[" ? ']' : '}';
    } else if (*symbol == ")" || *symbol == "]" || *symbol == "}") {
      if (brackets.empty() || brackets.back() != (*symbol)[0]) {
        const std::string expected = brackets.empty() ? "no closing bracket" : std::string("'") + brackets.back() + "'";
        return fault("expected " + expected + ", found '" + std::string(*symbol) + "'", line_);
      }
      brackets.pop_back();
    }
    add(Token::Kind::symbol, std::string(*symbol));
    skip_to(position_ + symbol->size());
    return {};
  }

  void scan_number() {
    std::size_t end = position_;
    std::string digits;
    const auto take_digits = [&] {
      while (is_ascii_digit(at(end)) || (at(end) == '_' && is_ascii_digit(at(end + 1)))) {
        if (source_[end] != '_') {
          digits += source_[end];
        }
        ++end;
      }
    };
    take_digits();
    bool floating = false;
    if (at(end) == '.' && is_ascii_digit(at(end + 1))) {
      floating = true;
      digits += source_[end++];
      take_digits();
    }
    if (at(end) == 'e' || at(end) == 'E') {
      const std::size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
      if (is_ascii_digit(at(end + 1 + sign))) {
        floating = true;
        digits += source_.substr(end, 1 + sign);
        end += 1 + sign;
        take_digits();
      }
    }
    add(floating ? Token::Kind::floating : Token::Kind::integer, digits);
    skip_to(end);
  }

  Outcome<void> scan_string(char quote) {
    const int first_line = line_;
    std::string text;
    std::size_t i = position_ + 1;
    while (at(i) != quote) {
      if (i >= source_.size()) {
        return fault("expected the string to end, found the end of the template", first_line);
      }
      if (source_[i] != '\\' || i + 1 >= source_.size()) {
        text += source_[i++];
        continue;
      }
      i = unescape(i + 1, text);
    }
    add(Token::Kind::string, std::move(text));
    skip_to(i + 1);
    return {};
  }

  /// Python's escapes; an unknown one stays as it is. Returns the position behind it.
  std::size_t unescape(std::size_t i, std::string& text) const {
    constexpr std::string_view kNames = "\\'\"abfnrtv\n";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char c = source_[i];
    if (const std::size_t known = kNames.find(c); known != kNone) {
      if (c != '\n') {
        text += kValues[known];
      }
      return i + 1;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    char32_t code_point = 0;
    std::size_t found = 0;
    while (found < digits) {
      const char digit = at(i + 1 + found);
      const char lower = static_cast<char>(digit | 0x20);
      if (!is_ascii_digit(digit) && !(lower >= 'a' && lower <= 'f')) {
        break;
      }
      code_point = code_point * 16 + static_cast<char32_t>(is_ascii_digit(digit) ? digit - '0' : lower - 'a' + 10);
      ++found;
    }
    const bool valid = code_point <= 0x10FFFF && !(code_point >= 0xD800 && code_point < 0xE000);
    if (digits == 0 || found != digits || !valid) {
      text += '\\';
      return i;
    }
    append_utf8(text, code_point);
    return i + 1 + digits;
  }

  std::string source_;
  std::size_t position_ = 0;
  int line_ = 1;
  /// Whether the text at `position_` starts a line as far as tags see it.
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Outcome<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return fault("expected a template of at most " + std::to_string(kMaxSourceBytes) + " bytes, found " +
                 std::to_string(source.size()));
  }
  if (const std::size_t invalid = find_invalid_utf8(source); invalid != kNone) {
    return fault(
        "expected valid UTF-8, found an invalid byte",
        1 + static_cast<int>(std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(invalid), '\n')));
  }
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace troupe::jinja
