#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/tokenizer_loader.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"
#include "tokenizer_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

/// A document that must be refused, and what the error says besides the file's name.
struct Malformed {
  std::string name;
  /// A JSON merge patch of the base.
  std::string patch;
  std::vector<std::string> expected;
  ErrorCode code = ErrorCode::malformed_file;
  std::string base = "byte_level";
};

void check_error(const Result<std::unique_ptr<Tokenizer>>& tokenizer, const std::vector<std::string>& expected,
                 ErrorCode code = ErrorCode::malformed_file) {
  REQUIRE_FALSE(tokenizer);
  CHECK(tokenizer.error().code == code);
  for (const std::string& part : expected) {
    CHECK_THAT(tokenizer.error().message, Catch::Contains(part));
  }
  CHECK_THAT(tokenizer.error().message, Catch::Contains("tokenizer"));
  CHECK(tokenizer.error().message.size() < 600);
}

void check_refused(const std::vector<Malformed>& cases) {
  for (const Malformed& item : cases) {
    INFO(item.name);
    json document = base_tokenizer(item.base);
    document.merge_patch(json::parse(item.patch));
    std::vector<std::string> expected = item.expected;
    expected.emplace_back("tokenizer.json");
    check_error(load_text(document.dump()), expected, item.code);
  }
}

json small_model() {
  return json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
}

TEST_CASE("A vocabulary that is wrong is refused when it is loaded") {
  const json whole = small_model();
  REQUIRE(load_text(whole.dump()));
  const auto check_vocab = [&](std::string_view vocab, const std::vector<std::string>& expected) {
    INFO(vocab);
    check_error(load_text(R"({"model": {"type": "BPE", "merges": [["a", "b"]], "vocab": )" + std::string(vocab) + "}}"),
                expected);
  };
  check_vocab(R"({"a": 0, "b": -1, "ab": 2})", {"/model/vocab", "\"b\"", "found -1"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 1})", {"/model/vocab", "id 1 already belongs to \"b\""});
  check_vocab(R"({"a": 0, "b": 1, "a": 2, "ab": 3})", {"/model/vocab", "two ids, 0 and 2"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 7})", {"/model/vocab", "no token has id 2", "up to 7"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 2147483648})", {"/model/vocab", "found 2147483648"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 18446744073709551615})", {"/model/vocab"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 1e999})", {"byte"});
  check_vocab(R"({"a": 0, "b": 1, "ab": 2.5})", {"/model/vocab", "expected an integer"});
  check_vocab(R"({"a": 0, "b": "1", "ab": 2})", {"/model/vocab", "expected an integer, found string"});
  check_vocab(R"({"a": 0, "b": {}, "ab": 2})", {"/model/vocab", "expected an integer, found object"});
  check_vocab(R"({"a": 0, "b": [1], "ab": 2})", {"/model/vocab", "expected an integer, found array"});
  check_vocab(R"({})", {"/model/vocab", "expected"});
  check_vocab(R"([])", {"/model/vocab", "expected an object"});
  check_vocab("null", {"/model/vocab", "expected an object"});
  check_vocab(R"({"a": 0}, "vocab": {"b": 1})", {"\"vocab\" occurs twice"});
}

TEST_CASE("Merges that are wrong are refused when they are loaded") {
  const auto check_merges = [&](std::string_view merges, const std::vector<std::string>& expected) {
    INFO(merges);
    check_error(load_text(R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": )" + std::string(merges) + "}}"),
                expected);
  };
  check_merges(R"([["a", "b"], ["b", "a"]])", {"/model/merges", "1: result \"ba\" is not in the vocabulary"});
  check_merges(R"(["a b", "a c"])", {"/model/merges", "1: part \"c\" is not in the vocabulary"});
  check_merges(R"(["ab"])", {"/model/merges/0", "two parts", "\"ab\""});
  check_merges(R"(["a b", "a b c"])", {"/model/merges/1", "two parts", "\"a b c\""});
  check_merges(R"([["a", "b", "c"]])", {"/model/merges/0", "two parts, found 3"});
  check_merges(R"([["a"]])", {"/model/merges/0", "two parts, found 1"});
  check_merges(R"([["a", 1]])", {"/model/merges/0", "found number"});
  check_merges(R"([[["a", "b"]]])", {"/model/merges/0", "found array"});
  check_merges(R"([{"a": "b"}])", {"/model/merges/0", "found object"});
  check_merges(R"([null])", {"/model/merges/0", "found null"});
  check_merges(R"({"a": "b"})", {"/model/merges"});
  check_merges(R"("a b")", {"/model/merges"});
}

TEST_CASE("Fields that are missing or of the wrong kind are refused") {
  check_refused({
      {"no model", R"({"model": null})", {"/model"}},
      {"model is a number", R"({"model": 1})", {"/model"}},
      {"another model", R"({"model": {"type": "Unigram"}})", {"/model/type", "\"Unigram\""}, ErrorCode::unsupported},
      {"WordPiece", R"({"model": {"type": "WordPiece"}})", {"/model/type", "\"WordPiece\""}, ErrorCode::unsupported},
      {"type is a number", R"({"model": {"type": 3}})", {"/model/type", "expected a string, found 3"}},
      {"no vocab", R"({"model": {"vocab": null}})", {"/model/vocab"}},
      {"no merges", R"({"model": {"merges": null}})", {"/model/merges"}},
      {"unknown token", R"({"model": {"unk_token": "<none>"}})", {"/model/unk_token", "\"<none>\""}},
      {"byte_fallback", R"({"model": {"byte_fallback": "yes"}})", {"/model/byte_fallback", "true or false"}},
  });
}

TEST_CASE("Model options that are not supported are refused by name") {
  check_refused({
      {"prefix",
       R"({"model": {"continuing_subword_prefix": "##"}})",
       {"/model/continuing_subword_prefix"},
       ErrorCode::unsupported},
      {"suffix", R"({"model": {"end_of_word_suffix": "</w>"}})", {"/model/end_of_word_suffix"}, ErrorCode::unsupported},
      {"dropout", R"({"model": {"dropout": 0.1}})", {"/model/dropout"}, ErrorCode::unsupported},
  });
}

TEST_CASE("Components that are not supported are refused by name") {
  constexpr auto kUnsupported = ErrorCode::unsupported;
  check_refused({
      {"normalizer",
       R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}})",
       {"/normalizer/type", "normalizer \"Precompiled\" is not supported"},
       kUnsupported},
      {"nested normalizer",
       R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Odd"}]}})",
       {"/normalizer/normalizers/1/type", "\"Odd\""},
       kUnsupported},
      {"pre-tokenizer",
       R"({"pre_tokenizer": {"type": "FixedLength", "length": 0}})",
       {"/pre_tokenizer/type", "pre-tokenizer \"FixedLength\" is not supported"},
       kUnsupported},
      {"nested pre-tokenizer",
       R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]}})",
       {"/pre_tokenizer/pretokenizers/0/type", "\"UnicodeScripts\""},
       kUnsupported},
      {"decoder",
       R"({"decoder": {"type": "CTC"}})",
       {"/decoder/type", "decoder \"CTC\" is not supported"},
       kUnsupported},
      {"order of decoders",
       R"({"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}})",
       {"/decoder", "step 1"},
       kUnsupported},
      {"post-processor", R"({"post_processor": {"type": "Odd"}})", {"/post_processor/type", "\"Odd\""}, kUnsupported},
      {"long hostile name",
       R"({"decoder": {"type": ")" + std::string(100000, 'x') + "\"}}",
       {"/decoder/type"},
       kUnsupported},
  });
}

TEST_CASE("Components with wrong fields are refused") {
  check_refused({
      {"no type", R"({"normalizer": {"kind": 1}})", {"/normalizer/type", "expected a string, found nothing"}},
      {"not an object", R"({"pre_tokenizer": 5})", {"/pre_tokenizer", "expected an object, found 5"}},
      {"sequence",
       R"({"normalizer": {"type": "Sequence", "normalizers": {}}})",
       {"/normalizer/normalizers", "expected an array"}},
      {"no pattern", R"({"normalizer": {"type": "Replace", "content": "x"}})", {"/normalizer/pattern"}},
      {"empty pattern",
       R"({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}})",
       {"/normalizer/pattern/String", "not empty"}},
      {"regex",
       R"x({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated",
        "pretokenizers": null}})x",
       {"/pre_tokenizer/pattern/Regex", "regular expression \"(a\"", "parenthes"}},
      {"regex repeats nothing",
       R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "*"}, "content": ""}})",
       {"/normalizer/pattern/Regex"}},
      {"behavior",
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Odd"}})",
       {"/pre_tokenizer/behavior", "\"Odd\""}},
      {"metaspace",
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})",
       {"/pre_tokenizer/replacement", "one character"}},
      {"scheme",
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "odd"}})",
       {"/pre_tokenizer/prepend_scheme", "\"odd\""}},
      {"strip longer than any token",
       R"({"decoder": {"type": "Strip", "content": " ", "start": 1000, "stop": 0}})",
       {"/decoder/start", "found 1000"}},
      {"strip below zero",
       R"({"decoder": {"type": "Strip", "content": " ", "start": 0, "stop": -1}})",
       {"/decoder/stop", "found -1"}},
      {"strip nothing",
       R"({"decoder": {"type": "Strip", "content": "", "start": 0, "stop": 0}})",
       {"/decoder/content", "one character"}},
  });
}

TEST_CASE("Post-processors that name absent tokens are refused") {
  check_refused({
      {"undefined",
       R"({"post_processor": {"special_tokens": {"<s>": null}}})",
       {"/post_processor/single/0/SpecialToken/id", "\"<s>\" is not among the template's special tokens"}},
      {"no such id",
       R"({"post_processor": {"special_tokens": {"<s>": {"ids": [99999]}}}})",
       {"/post_processor/special_tokens/<s>/ids/0", "no token has id 99999"}},
      {"negative id", R"({"post_processor": {"special_tokens": {"<s>": {"ids": [-1]}}}})", {"no token has id -1"}},
      {"huge id",
       R"({"post_processor": {"special_tokens": {"<s>": {"ids": [4294967297]}}}})",
       {"no token has id 4294967297"}},
      {"no text", R"({"post_processor": {"single": []}})", {"/post_processor/single", "the sequence A"}},
      {"second text",
       R"({"post_processor": {"single": [{"Sequence": {"id": "B"}}]}})",
       {"/post_processor/single/0/Sequence/id"},
       ErrorCode::unsupported},
      {"roberta",
       R"({"post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>"]}})",
       {"/post_processor/sep", "a token and its id"}},
      {"roberta id",
       R"({"post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 70000], "sep": ["</s>", 0]}})",
       {"/post_processor/cls/1", "70000"}},
  });
}

TEST_CASE("Added tokens that are wrong are refused") {
  const auto added = [](std::string_view tokens) {
    return R"({"post_processor": null, "added_tokens": )" + std::string(tokens) + "}";
  };
  check_refused({
      {"no array", added(R"({})"), {"/added_tokens", "expected an array"}},
      {"no id", added(R"([{"content": "<x>"}])"), {"/added_tokens/0/id"}},
      {"no content", added(R"([{"id": 1}])"), {"/added_tokens/0/content"}},
      {"negative id", added(R"([{"id": -1, "content": "<x>"}])"), {"/added_tokens/0/id", "found -1"}},
      {"huge id", added(R"([{"id": 2147483648, "content": "<x>"}])"), {"/added_tokens/0/id", "found 2147483648"}},
      {"gap", added(R"([{"id": 600, "content": "<x>"}])"), {"no token has id 520", "up to 600"}},
      {"id of another token", added(R"([{"id": 1, "content": "<x>"}])"), {"/added_tokens/0", "id 1 belongs to both"}},
      {"one id twice",
       added(R"([{"id": 520, "content": "<x>"}, {"id": 520, "content": "<y>"}])"),
       {"/added_tokens/1", "id 520 belongs to both"}},
      {"two ids",
       added(R"([{"id": 520, "content": "<x>"}, {"id": 521, "content": "<x>"}])"),
       {"/added_tokens/1", "two ids, 520 and 521"}},
      {"flag", added(R"([{"id": 520, "content": "<x>", "lstrip": 1}])"), {"/added_tokens/0/lstrip"}},
  });
}

TEST_CASE("Text that is no JSON document is refused with its place") {
  const std::string text = base_tokenizer("byte_level").dump();
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  check_error(load_text(text.substr(0, text.size() / 2)), {"tokenizer.json", "byte", "not valid JSON"});
  check_error(load_text("{}"), {"tokenizer.json", "/model"});
  check_error(load_text("[]"), {"tokenizer.json"});
  check_error(load_text("7"), {"tokenizer.json"});
  check_error(load_text(text + "}"), {"byte"});
  check_error(load_text(std::string("{\"model\": \"\xC3\"}")), {"byte", "not valid JSON"});
  check_error(load_text(with("\"<s>\"", "\"\xED\xA0\x80\"")), {"byte", "not valid JSON"});
  check_error(load_text(with("\"<s>\"", R"("\uD800")")), {"byte", "not valid JSON"});
  check_error(load_text(std::string(200000, '[')), {"levels of nesting"});
  check_error(load_text(R"({"model": )" + std::string(200000, '[')), {"levels of nesting"});
  check_error(load_text(R"({"decoder": null, "decoder": null})"), {"\"decoder\" occurs twice"});
  check_error(load_text(std::string(4 << 20, ' ')), {"byte"});

  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 60; ++i) {
    nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
  }
  json document = small_model();
  document["normalizer"] = json::parse(nested);
  check_error(load_text(document.dump()), {"levels of nesting"});
}

TEST_CASE("A regular expression that is nested too deeply or too large is refused") {
  const auto load_regex = [](const std::string& regex) {
    INFO(regex.substr(0, 20));
    json document = small_model();
    document["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    return load_text(document.dump());
  };
  REQUIRE(load_regex("(((a)))"));
  check_error(load_regex(std::string(100000, '(') + std::string(100000, ')')), {"/pre_tokenizer/pattern/Regex"});
  check_error(load_regex(std::string(100000, '[')), {"/pre_tokenizer/pattern/Regex"});
  check_error(load_regex("a{1,99999999}"), {"/pre_tokenizer/pattern/Regex"});
}

TEST_CASE("Files that are missing or too large are refused") {
  const TemporaryFolder folder;
  check_error(load_tokenizer(folder.path()), {"tokenizer.json"}, ErrorCode::io_error);
  folder.write("tokenizer.model", "sentencepiece");
  check_error(load_tokenizer(folder.path()), {"tokenizer.json"}, ErrorCode::io_error);
  std::filesystem::resize_file(folder.write("tokenizer.json", "{}"), std::uintmax_t{1} << 40U);
  check_error(load_tokenizer(folder.path()), {"tokenizer.json", "at most"});
}

TEST_CASE("A tokenizer_config.json gives BOS and EOS or is refused") {
  const json document = base_tokenizer("byte_level");
  CHECK_FALSE(load_document(document)->bos_token_id());
  const auto tokenizer =
      load_document(document, R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}})");
  CHECK(tokenizer->bos_token_id() == tokenizer->token_to_id("<s>"));
  CHECK(tokenizer->eos_token_id() == tokenizer->token_to_id("</s>"));
  CHECK(tokenizer->eos_token_id());
  CHECK_FALSE(load_document(document, R"({"bos_token": null, "eos_token": "absent"})")->eos_token_id());

  check_error(load_text(document.dump(), R"({"eos_token": 5})"), {"tokenizer_config.json", "/eos_token"});
  check_error(load_text(document.dump(), R"({"bos_token": {"text": "<s>"}})"),
              {"tokenizer_config.json", "/bos_token/content"});
  check_error(load_text(document.dump(), "[]"), {"tokenizer_config.json"});
  check_error(load_text(document.dump(), "{"), {"tokenizer_config.json"});
}

}  // namespace
}  // namespace troupe::test
