#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/added_tokens.hpp"
#include "model/bpe.hpp"
#include "model/byte_level.hpp"
#include "model/regex.hpp"
#include "model/unicode.hpp"
#include "model/utf8.hpp"
#include "model/vocabulary.hpp"
#include "tests/support/catch.hpp"

/// The parts of tokenizers, each alone; the recorded tokenizers test them together.
namespace troupe::test {
namespace {

using Ids = std::vector<TokenId>;

TEST_CASE("UTF-8 is taken apart as Unicode says") {
  const auto check = [](std::string_view text, char32_t value, std::size_t size) {
    const CodePoint point = first_code_point(text);
    CHECK(point.value == value);
    CHECK(point.size == size);
  };
  check("a\u00E9", U'a', 1);
  check("\u00E9a", 0xE9, 2);
  check("\u20AC", 0x20AC, 3);
  check("\U0010FFFF", 0x10FFFF, 4);
  check(std::string_view("\0", 1), 0, 1);
  check("\x80", 0xFFFD, 1);              // a tail without a head
  check("\xC0\x80", 0xFFFD, 1);          // longer than needed
  check("\xE0\x9F\xBF", 0xFFFD, 1);      // longer than needed
  check("\xED\xA0\x80", 0xFFFD, 1);      // a surrogate
  check("\xF4\x90\x80\x80", 0xFFFD, 1);  // beyond the last code point
  check("\xF0\x9F\x98", 0xFFFD, 3);      // cut short
  check(
      "\xE2\x82"
      "a",
      0xFFFD, 2);  // cut short
  CHECK(find_invalid_utf8("a\u00E9\xE2\x82") == 3);
  CHECK_FALSE(find_invalid_utf8("a\u00E9\u20AC\U0001F600"));
}

TEST_CASE("Code points written as UTF-8 read back") {
  for (const char32_t code_point :
       {0x0U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    std::string text;
    append_utf8(text, code_point);
    CHECK(first_code_point(text).value == code_point);
    CHECK(first_code_point(text).size == text.size());
  }
}

TEST_CASE("A stream of bytes holds back the start of a character") {
  Utf8Stream stream;
  std::string text;
  stream.push("a\xE2\x82", text);
  CHECK(text == "a");
  stream.push("\xAC\xF0", text);
  CHECK(text == "a\u20AC");
  stream.push("b", text);
  CHECK(text == "a\u20AC\uFFFDb");
  stream.push("\xF0\x9F\x98", text);
  stream.finish(text);
  CHECK(text == "a\u20AC\uFFFDb\uFFFD");
  stream.finish(text);
  CHECK(text == "a\u20AC\uFFFDb\uFFFD");
}

TEST_CASE("Properties of code points are Unicode's") {
  CHECK(is_white_space(U' '));
  CHECK(is_white_space(0x3000));
  CHECK_FALSE(is_white_space(0x180E));
  CHECK_FALSE(is_white_space(0x200B));
  CHECK(is_numeric(U'7'));
  CHECK(is_numeric(0xBD));    // one half
  CHECK(is_numeric(0x2167));  // Roman eight
  CHECK_FALSE(is_numeric(0x56DB));
  CHECK(is_punctuation(U'$'));
  CHECK(is_punctuation(0x3002));
  CHECK_FALSE(is_punctuation(0x20AC));
  CHECK(is_word(U'_'));
  CHECK(is_word(0x301));
  CHECK(is_word(0x200D));
  CHECK_FALSE(is_word(U'-'));
}

TEST_CASE("Normal forms and lower case are Unicode's") {
  CHECK(normalize_unicode("e\u0301 \uFB01 \u1100\u1161", NormalizationForm::nfc) == "\u00E9 \uFB01 \uAC00");
  CHECK(normalize_unicode("\u00E9 \uAC00", NormalizationForm::nfd) == "e\u0301 \u1100\u1161");
  CHECK(normalize_unicode("\uFB01e\u0301", NormalizationForm::nfkc) == "fi\u00E9");
  CHECK(normalize_unicode("\uFF21\u00E9", NormalizationForm::nfkd) == "Ae\u0301");
  CHECK(normalize_unicode(std::string("a\0b", 3), NormalizationForm::nfc) == std::string("a\0b", 3));
  CHECK(to_lower("\u00C9T\u00C9 \u0130 \u03A3") == "\u00E9t\u00E9 i\u0307 \u03C3");
}

TEST_CASE("The byte-level alphabet writes every byte as a character and back") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
  }
  std::string text;
  append_byte_level(text, bytes);
  CHECK_FALSE(find_invalid_utf8(text));
  CHECK(from_byte_level(text) == bytes);
  text.clear();
  append_byte_level(text, " \n\xC3");
  CHECK(text == "\u0120\u010A\u00C3");
  CHECK(from_byte_level("a\u20AC") == "a\u20AC");
}

TEST_CASE("A regular expression finds what does not overlap") {
  const auto check = [](std::string_view pattern, std::string_view text, const std::vector<TextSpan>& expected) {
    CAPTURE(pattern, text);
    const auto regex = Regex::compile(pattern);
    REQUIRE(regex);
    std::vector<TextSpan> matches;
    REQUIRE(regex->find_all(text, matches));
    CHECK(matches == expected);
  };
  check("a+", "aabxa", {{0, 2}, {4, 5}});
  check("a*", "baac", {{0, 0}, {1, 3}, {4, 4}});
  check("$", "\u00E9", {{2, 2}});
  check("\\s+(?!\\S)", "a   b  ", {{1, 3}, {5, 7}});
  check("x", "", {});
  CHECK_FALSE(Regex::compile("(a"));
  CHECK_FALSE(Regex::compile("[b-a]"));
}

TEST_CASE("A pattern replaces what it matches, literally") {
  std::string text = "a.b..c";
  REQUIRE(TextPattern(std::string(".")).replace_all(text, "\\0"));
  CHECK(text == "a\\0b\\0\\0c");
  text = "aaa";
  REQUIRE(TextPattern(std::string("aa")).replace_all(text, "aaaa"));
  CHECK(text == "aaaaa");
  CHECK(TextPattern(std::string("\u2581")).is_single_code_point());
  CHECK_FALSE(TextPattern(std::string("ab")).is_single_code_point());
}

TEST_CASE("A vocabulary refuses what would be ambiguous") {
  Vocabulary vocabulary;
  REQUIRE(vocabulary.add("b", 3));
  REQUIRE(vocabulary.add("a", 0));
  CHECK(vocabulary.size() == 4);
  CHECK(vocabulary.find("b") == 3);
  CHECK_FALSE(vocabulary.find("c"));
  CHECK(*vocabulary.token(0) == "a");
  CHECK(vocabulary.token(1) == nullptr);
  CHECK(vocabulary.token(-1) == nullptr);
  CHECK(vocabulary.token(4) == nullptr);
  CHECK_FALSE(vocabulary.add("a", 2));
  CHECK_FALSE(vocabulary.add("c", 3));
  CHECK_FALSE(vocabulary.add("c", -1));
  CHECK_FALSE(vocabulary.add("c", Vocabulary::kMaxTokens));
}

std::vector<std::string> segments(const AddedTokenMatcher& matcher, std::string_view text) {
  std::vector<std::string> parts;
  for (const auto& segment : matcher.split(text)) {
    const std::string part(text.substr(segment.span.begin, segment.span.end - segment.span.begin));
    parts.push_back(segment.token ? std::to_string(*segment.token) + "=" + part : part);
  }
  return parts;
}

TEST_CASE("Added tokens are found leftmost first and longest") {
  AddedTokenMatcher matcher;
  matcher.add("<a>", {.id = 1});
  matcher.add("<a><b>", {.id = 2});
  matcher.add("a><b", {.id = 3});
  matcher.add("<a>", {.id = 4});
  using Parts = std::vector<std::string>;
  CHECK(segments(matcher, "").empty());
  CHECK(segments(matcher, "x<a>y") == Parts{"x", "1=<a>", "y"});
  CHECK(segments(matcher, "<a><b>") == Parts{"2=<a><b>"});
  CHECK(segments(matcher, "<a><a><b") == Parts{"1=<a>", "1=<a>", "<b"});
  CHECK(segments(matcher, "a><b>") == Parts{"3=a><b", ">"});
  CHECK(segments(matcher, "<a") == Parts{"<a"});
}

TEST_CASE("Added tokens take white space and words into account") {
  AddedTokenMatcher matcher;
  matcher.add("<l>", {.id = 1, .lstrip = true});
  matcher.add("<r>", {.id = 2, .rstrip = true});
  matcher.add("<w>", {.id = 3, .single_word = true});
  using Parts = std::vector<std::string>;
  CHECK(segments(matcher, "a \u3000<l> b") == Parts{"a", "1= \u3000<l>", " b"});
  CHECK(segments(matcher, " <l>") == Parts{"1= <l>"});
  CHECK(segments(matcher, "a <r> \n b") == Parts{"a ", "2=<r> \n ", "b"});
  CHECK(segments(matcher, "<r>  <l>") == Parts{"2=<r>  ", "1=<l>"});
  CHECK(segments(matcher, "<w> \u00E9<w> <w>a <w>!") == Parts{"3=<w>", " \u00E9<w> <w>a ", "3=<w>", "!"});
}

Ids tokens_of(const Bpe& bpe, std::string_view piece) {
  Bpe::Workspace workspace;
  Ids ids;
  bpe.encode(piece, workspace, ids);
  // A workspace leaves nothing behind.
  Ids again;
  bpe.encode(piece, workspace, again);
  CHECK(ids == again);
  return ids;
}

TEST_CASE("Merges are done by rank, then from left to right") {
  auto vocabulary = std::make_shared<Vocabulary>();
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc", "abc", "aa", "<unk>", "cc"};
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    REQUIRE(vocabulary->add(tokens[id], static_cast<std::int64_t>(id)));
  }
  const std::vector<std::pair<std::string, std::string>> pairs = {{"b", "c"}, {"a", "bc"}, {"a", "b"}, {"a", "a"}};
  const auto merges = ranked_merges(*vocabulary, pairs);
  REQUIRE(merges);
  const Bpe plain(vocabulary, *merges, {});
  CHECK(tokens_of(plain, "").empty());
  CHECK(tokens_of(plain, "abc") == Ids{5});
  CHECK(tokens_of(plain, "aab") == Ids{0, 3});
  CHECK(tokens_of(plain, "aaaaa") == Ids{6, 6, 0});
  CHECK(tokens_of(plain, "abab") == Ids{3, 3});
  CHECK(tokens_of(plain, "cc") == Ids{2, 2});
  // Unknown characters are dropped, and their neighbours may merge.
  CHECK(tokens_of(plain, "a\u00E9b") == Ids{3});
  const Bpe unknown(vocabulary, *merges, {.unknown = 7});
  CHECK(tokens_of(unknown, "a\u00E9\u00E9b") == Ids{0, 7, 7, 1});
  const Bpe fused(vocabulary, *merges, {.unknown = 7, .fuse_unknown = true});
  CHECK(tokens_of(fused, "a\u00E9\u00E9b") == Ids{0, 7, 1});
  const Bpe whole(vocabulary, *merges, {.ignore_merges = true});
  CHECK(tokens_of(whole, "cc") == Ids{8});
  CHECK(tokens_of(whole, "ccc") == Ids{2, 2, 2});
}

}  // namespace
}  // namespace troupe::test
