#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/gguf_vocabulary.hpp"
#include "model/tokenizer_loader.hpp"
#include "tests/support/catch.hpp"
#include "tokenizer_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> made(GgufVocabulary vocabulary) {
  auto tokenizer = make_tokenizer(std::move(vocabulary));
  if (!tokenizer) {
    FAIL(tokenizer.error().message);
  }
  return std::move(*tokenizer);
}

/// The vocabulary of byte_level.json as a GGUF file has it; its added tokens but the special ones are left out.
GgufVocabulary byte_level_vocabulary(std::string pre) {
  const json document = base_tokenizer("byte_level");
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = std::move(pre);
  vocabulary.tokens.resize(document.at("/model/vocab"_json_pointer).size());
  vocabulary.token_types.resize(vocabulary.tokens.size(), 1);
  for (const auto& [token, id] : document.at("/model/vocab"_json_pointer).items()) {
    vocabulary.tokens.at(id.get<std::size_t>()) = token;
  }
  for (const json& merge : document.at("/model/merges"_json_pointer)) {
    vocabulary.merges.push_back(merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  }
  for (const std::string token : {"<s>", "</s>"}) {
    vocabulary.tokens.push_back(token);
    vocabulary.token_types.push_back(3);
  }
  vocabulary.bos_token_id = static_cast<TokenId>(vocabulary.tokens.size() - 2);
  vocabulary.eos_token_id = static_cast<TokenId>(vocabulary.tokens.size() - 1);
  return vocabulary;
}

/// A SentencePiece vocabulary: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 bytes, then the pieces.
GgufVocabulary sentence_piece_vocabulary(const std::vector<std::pair<std::string, float>>& pieces) {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>", "<s>", "</s>"};
  vocabulary.token_types = {2, 3, 3};
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 15U] + ">");
    vocabulary.token_types.push_back(6);
  }
  vocabulary.scores.resize(vocabulary.tokens.size(), 0.0F);
  for (const auto& [piece, score] : pieces) {
    vocabulary.tokens.push_back(piece);
    vocabulary.token_types.push_back(1);
    vocabulary.scores.push_back(score);
  }
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  vocabulary.unknown_token_id = 0;
  return vocabulary;
}

void check_refused(GgufVocabulary vocabulary, const std::vector<std::string>& expected,
                   ErrorCode code = ErrorCode::malformed_file) {
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  REQUIRE_FALSE(tokenizer);
  CHECK(tokenizer.error().code == code);
  for (const std::string& part : expected) {
    CHECK_THAT(tokenizer.error().message, Catch::Contains(part));
  }
}

TEST_CASE("Named pre-tokenizers of GGUF split as the tokenizer.json that they stand for") {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"gpt-2", "gpt2"},
      {"smollm", "digits_gpt2"},
      {"llama-bpe", "llama3_ignore_merges"},
      {"llama3", "llama3_ignore_merges"},
      {"llama-v3", "llama3_ignore_merges"},
      {"qwen2", "qwen2_nfc"},
      {"deepseek-r1-qwen", "qwen2_nfc"},
  };
  const std::vector<json> variants = read_json_lines("tokenizers/variants.jsonl.gz");
  for (const auto& [name, variant_name] : names) {
    INFO(name);
    const auto tokenizer = made(byte_level_vocabulary(name));
    int num_texts = 0;
    for (const json& variant : variants) {
      if (variant.at("name") != variant_name) {
        continue;
      }
      for (const json& item : variant.at("cases")) {
        const std::string text = item.at(0);
        // Those tokens are only in the tokenizer.json.
        if (text.find('<') == std::string::npos && text.find("\u00E9t\u00E9") == std::string::npos) {
          CAPTURE(text);
          CHECK(encoded(*tokenizer, text) == item.at(1).get<Ids>());
          ++num_texts;
        }
      }
    }
    CHECK(num_texts > 50);
  }
}

TEST_CASE("The default pre-tokenizer of GGUF splits three digits off and punctuation first") {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "default";
  vocabulary.tokens = {"1", "2", "3", "!", "a", "\u0120", "12", "123", "1231", "!!", "\u0120!", "\u0120a", "a!"};
  vocabulary.merges = {"1 2", "12 3", "123 1", "! !", "\u0120 !", "\u0120 a", "a !"};
  const auto tokenizer = made(std::move(vocabulary));
  CHECK(encoded(*tokenizer, "1231") == Ids{7, 0});
  CHECK(encoded(*tokenizer, " !!") == Ids{5, 9});
  CHECK(encoded(*tokenizer, " a!") == Ids{11, 3});
}

TEST_CASE("Control tokens of GGUF are found in the text and special") {
  GgufVocabulary vocabulary = byte_level_vocabulary("gpt-2");
  const TokenId bos = *vocabulary.bos_token_id;
  const TokenId eos = *vocabulary.eos_token_id;
  vocabulary.tokens.emplace_back("<tool call>");
  vocabulary.token_types.push_back(4);
  const TokenId tool = eos + 1;
  vocabulary.add_bos_token = true;
  vocabulary.add_eos_token = true;
  const auto tokenizer = made(std::move(vocabulary));
  const Ids hello = encoded(*tokenizer, "hello");
  CHECK(encoded(*tokenizer, "", true) == Ids{bos, eos});
  Ids expected = {eos, tool};
  expected.insert(expected.end(), hello.begin(), hello.end());
  CHECK(encoded(*tokenizer, "</s><tool call>hello") == expected);
  CHECK(tokenizer->decode(expected, true) == "<tool call>hello");
  CHECK(tokenizer->decode(expected, false) == "</s><tool call>hello");
  CHECK(tokenizer->is_special(eos));
  CHECK_FALSE(tokenizer->is_special(tool));
  CHECK(tokenizer->bos_token_id() == bos);
  CHECK(tokenizer->eos_token_id() == eos);
  CHECK(tokenizer->token_to_id("<tool call>") == tool);
}

TEST_CASE("SentencePiece merges the best score first and falls back to bytes") {
  // "▁" is 259.
  GgufVocabulary vocabulary = sentence_piece_vocabulary({{"\u2581", -9.0F},
                                                         {"a", -9.0F},
                                                         {"b", -9.0F},
                                                         {"c", -9.0F},
                                                         {"ab", -2.0F},
                                                         {"bc", -1.0F},
                                                         {"abc", -3.0F},
                                                         {"\u2581a", -4.0F},
                                                         {"aa", -5.0F}});
  SECTION("with a space in front") {
    const auto tokenizer = made(vocabulary);
    CHECK(encoded(*tokenizer, "") == Ids{});
    CHECK(encoded(*tokenizer, "abc") == Ids{259, 265});        // bc, then abc
    CHECK(encoded(*tokenizer, "aab") == Ids{266, 263});        // ab, then the space's a
    CHECK(encoded(*tokenizer, "aaaa") == Ids{266, 267, 260});  // the leftmost of equals
    CHECK(encoded(*tokenizer, "b\u00E9") == Ids{259, 261, 3 + 0xC3, 3 + 0xA9});
    CHECK(encoded(*tokenizer, "b</s>a") == Ids{259, 261, 2, 266});
    CHECK(tokenizer->decode(Ids{259, 265, 259, 3 + 0xC3, 3 + 0xA9}, false) == "abc \u00E9");
    CHECK(tokenizer->decode(Ids{259, 265, 3 + 0xC3, 260}, false) == "abc\uFFFDa");
    CHECK(tokenizer->token_bytes(3 + 0xC3) == "\xC3");
    CHECK(tokenizer->token_bytes(266) == " a");
  }
  SECTION("without a space in front and with BOS") {
    vocabulary.add_space_prefix = false;
    vocabulary.add_bos_token = true;
    const auto tokenizer = made(vocabulary);
    CHECK(encoded(*tokenizer, "abc", true) == Ids{1, 265});
    CHECK(encoded(*tokenizer, " abc") == Ids{259, 265});
    CHECK(tokenizer->decode(Ids{259, 265}, false) == " abc");
  }
  SECTION("unknown characters without byte tokens") {
    for (std::size_t id = 3; id < 259; ++id) {
      vocabulary.token_types[id] = 5;
    }
    const auto tokenizer = made(vocabulary);
    CHECK(encoded(*tokenizer, "a\u00E9\u00E9b") == Ids{266, 0, 261});
  }
}

TEST_CASE("GGUF vocabularies that are not supported are refused by name") {
  check_refused(byte_level_vocabulary("tekken"), {"tokenizer.ggml.pre", "\"tekken\"", "smollm", "llama-bpe", "qwen2"},
                ErrorCode::unsupported);
  check_refused(byte_level_vocabulary(""), {"tokenizer.ggml.pre", "found nothing", "default"}, ErrorCode::unsupported);
  for (const std::string model : {"bert", "t5", "rwkv", "plamo2", ""}) {
    GgufVocabulary vocabulary = byte_level_vocabulary("gpt-2");
    vocabulary.model = model;
    check_refused(std::move(vocabulary), {"tokenizer.ggml.model", '"' + model + '"', "gpt2", "llama"},
                  ErrorCode::unsupported);
  }
}

TEST_CASE("GGUF vocabularies that are wrong are refused when the tokenizer is made") {
  const auto check_changed = [](const std::vector<std::string>& expected, auto change) {
    GgufVocabulary vocabulary = byte_level_vocabulary("gpt-2");
    change(vocabulary);
    check_refused(std::move(vocabulary), expected);
  };
  check_changed({"tokenizer.ggml.merges", "found none"}, [](auto& vocabulary) { vocabulary.merges.clear(); });
  check_changed({"tokenizer.ggml.merges", "number 3", "two parts"},
                [](auto& vocabulary) { vocabulary.merges.at(3) = "ab"; });
  check_changed({"tokenizer.ggml.merges", "number 3", "two parts"},
                [](auto& vocabulary) { vocabulary.merges.at(3) = "a b c"; });
  check_changed({"tokenizer.ggml.merges", "number 3", "part", "not in the vocabulary"},
                [](auto& vocabulary) { vocabulary.merges.at(3) = "zzz a"; });
  check_changed({"tokenizer.ggml.merges", "number 3", "result", "not in the vocabulary"},
                [](auto& vocabulary) { vocabulary.merges.at(3) = "! a"; });
  check_changed({"tokenizer.ggml.tokens", "number 7", "two ids, 4 and 7"},
                [](auto& vocabulary) { vocabulary.tokens.at(7) = vocabulary.tokens.at(4); });
  check_changed({"tokenizer.ggml.token_type", "expected 522", "found 521"},
                [](auto& vocabulary) { vocabulary.token_types.pop_back(); });
  check_changed({"tokenizer.ggml.bos_token_id", "below 522", "found 522"},
                [](auto& vocabulary) { vocabulary.bos_token_id = 522; });
  check_changed({"tokenizer.ggml.eos_token_id", "found -1"}, [](auto& vocabulary) { vocabulary.eos_token_id = -1; });
  check_changed({"tokenizer.ggml.unknown_token_id", "found 70000"},
                [](auto& vocabulary) { vocabulary.unknown_token_id = 70000; });

  GgufVocabulary pieces = sentence_piece_vocabulary({{"a", -1.0F}});
  pieces.scores.pop_back();
  check_refused(std::move(pieces), {"tokenizer.ggml.scores", "expected 260", "found 259"});
}

TEST_CASE("Tokens of GGUF that are empty or not valid UTF-8 are no danger") {
  GgufVocabulary vocabulary = byte_level_vocabulary("gpt-2");
  vocabulary.tokens.emplace_back("");
  vocabulary.token_types.push_back(3);
  const auto empty = static_cast<TokenId>(vocabulary.tokens.size() - 1);
  const auto tokenizer = made(vocabulary);
  CHECK(tokenizer->decode(Ids{empty}, false).empty());
  CHECK(encoded(*tokenizer, "abc").size() <= 3);
  const auto sentence_piece = made(sentence_piece_vocabulary({{"", -1.0F}, {"a", -1.0F}}));
  CHECK(encoded(*sentence_piece, "a") == Ids{3 + 0xE2, 3 + 0x96, 3 + 0x81, 260});

  vocabulary.tokens.back() = "\xFF\xC3";
  check_refused(vocabulary, {"tokenizer.ggml.tokens", "number 522", "not valid UTF-8"});
  check_refused(sentence_piece_vocabulary({{"\xC3", -1.0F}}), {"tokenizer.ggml.tokens", "number 259"});
}

}  // namespace
}  // namespace troupe::test
