#include "model/detokenizer.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/tokenizer.hpp"
#include "model/tokenizer_loader.hpp"
#include "model/utf8.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden_models.hpp"
#include "tests/support/seed.hpp"
#include "tokenizer_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

/// Characters of two to four bytes, joined emoji, combining marks.
constexpr std::string_view kMixedText =
    "na\u00EFve caf\u00E9 \uC0BC\uACB9\uC0B4 \U0001F999 \U0001F469\u200D\U0001F469\u200D\U0001F467 "
    "\u010F\u00E1belsk\u00E9 \u0301 tab\tend";

/// Tokenizers with every kind of decoder.
std::vector<std::pair<std::string, std::unique_ptr<Tokenizer>>> recorded_tokenizers() {
  std::vector<std::pair<std::string, std::unique_ptr<Tokenizer>>> tokenizers;
  for (const json& variant : read_json_lines("tokenizers/variants.jsonl.gz")) {
    const std::string name = variant.at("name");
    const bool other_decoder = variant.at("patch").contains("decoder");
    if (other_decoder || name == "llama3" || name == "metaspace_first" || name == "llama2") {
      json document = base_tokenizer(variant.at("base"));
      document.merge_patch(variant.at("patch"));
      tokenizers.emplace_back(name, load_document(document));
    }
  }
  return tokenizers;
}

/// Feeds `ids` in pieces that end at `cuts` and returns the joined text; each piece must be valid UTF-8.
std::string streamed(const Tokenizer& tokenizer, const Ids& ids, std::span<const std::size_t> cuts, bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  const auto take = [&](const std::string& piece) {
    CHECK_FALSE(find_invalid_utf8(piece));
    text += piece;
  };
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    take(detokenizer.push(std::span(ids).subspan(begin, cut - begin)));
    begin = cut;
  }
  take(detokenizer.push(std::span(ids).subspan(begin)));
  take(detokenizer.finish());
  return text;
}

std::vector<std::size_t> every_token(const Ids& ids) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    cuts.push_back(i);
  }
  return cuts;
}

TEST_CASE("Pieces of every split of a text join to its decoding") {
  for (const auto& [name, tokenizer] : recorded_tokenizers()) {
    INFO(name);
    const Ids ids = encoded(*tokenizer, std::string("<s> ") + std::string(kMixedText) + " </s>", true);
    const std::string expected = tokenizer->decode(ids, false);
    CHECK(streamed(*tokenizer, ids, {}, false) == expected);
    CHECK(streamed(*tokenizer, ids, every_token(ids), false) == expected);
    CHECK(streamed(*tokenizer, ids, every_token(ids), true) == tokenizer->decode(ids, true));
    for (std::size_t first = 0; first <= ids.size(); ++first) {
      for (std::size_t second = first; second <= ids.size(); second += 3) {
        CHECK(streamed(*tokenizer, ids, std::vector{first, second}, false) == expected);
      }
    }
  }
}

TEST_CASE("Pieces of random tokens join to their decoding") {
  const std::uint64_t seed = test_seed();
  INFO("TROUPE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  for (const auto& [name, tokenizer] : recorded_tokenizers()) {
    INFO(name);
    for (int round = 0; round < 200; ++round) {
      Ids ids(below(40));
      // Some are no tokens at all.
      std::generate(ids.begin(), ids.end(),
                    [&] { return static_cast<TokenId>(below(tokenizer->vocab_size() + 3)) - 1; });
      std::vector<std::size_t> cuts;
      for (std::size_t cut = below(3); cut < ids.size(); cut += below(4)) {
        cuts.push_back(cut);
      }
      CAPTURE(ids, cuts);
      const bool skip_special = below(2) == 0;
      CHECK(streamed(*tokenizer, ids, cuts, skip_special) == tokenizer->decode(ids, skip_special));
    }
  }
}

TEST_CASE("A character split over tokens comes out whole with its last token") {
  const json document = base_tokenizer("byte_level");
  const auto tokenizer = load_document(document);
  const Ids ids = encoded(*tokenizer, "\U0001F469");
  REQUIRE(ids.size() > 1);
  Detokenizer detokenizer(*tokenizer, false);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    CHECK(detokenizer.push(std::span(ids).subspan(i, 1)).empty());
  }
  CHECK(detokenizer.push(std::span(ids).last(1)) == "\U0001F469");
  CHECK(detokenizer.finish().empty());
}

TEST_CASE("A character that never becomes whole is replaced at the end and forgotten") {
  const auto tokenizer = load_document(base_tokenizer("byte_level"));
  Ids ids = encoded(*tokenizer, "\U0001F469");
  ids.pop_back();
  Detokenizer detokenizer(*tokenizer, false);
  CHECK(detokenizer.push(ids).empty());
  CHECK(detokenizer.finish() == "\uFFFD");
  CHECK(detokenizer.finish().empty());
  CHECK(detokenizer.push(encoded(*tokenizer, "hello")) == "hello");
}

TEST_CASE("Two streams over one tokenizer do not disturb each other") {
  for (const std::string base : {"byte_level", "byte_fallback"}) {
    const auto tokenizer = load_document(base_tokenizer(base));
    const Ids first = encoded(*tokenizer, std::string(kMixedText));
    Ids second = first;
    std::reverse(second.begin(), second.end());
    Detokenizer one(*tokenizer, false);
    Detokenizer other(*tokenizer, false);
    std::string first_text;
    std::string second_text;
    for (std::size_t i = 0; i < first.size(); ++i) {
      first_text += one.push(std::span(first).subspan(i, 1));
      second_text += other.push(std::span(second).subspan(i, 1));
    }
    CHECK(first_text + one.finish() == tokenizer->decode(first, false));
    CHECK(second_text + other.finish() == tokenizer->decode(second, false));
  }
}

TEST_CASE("SmolLM2's tokens stream without replacement characters") {
  const auto path = smollm2_path();
  if (!path) {
    return;
  }
  const auto tokenizer = make_tokenizer(read_vocabulary(*path));
  REQUIRE(tokenizer);
  const Ids ids = encoded(**tokenizer, kMixedText);
  const std::string text = streamed(**tokenizer, ids, every_token(ids), false);
  CHECK(text == kMixedText);
}

TEST_CASE("A decoder made of token bytes alone joins to the same text") {
  // What `Tokenizer` offers to tokenizers that do not override it.
  class Bytes : public Tokenizer {
   public:
    Result<Ids> encode(std::string_view text, bool /*add_special_tokens*/) const override {
      return Ids(text.begin(), text.end());
    }
    std::string decode(std::span<const TokenId> /*ids*/, bool /*skip_special_tokens*/) const override { return {}; }
    std::string_view token_bytes(TokenId id) const override { return std::string_view(bytes_).substr(id & 0xFF, 1); }
    bool is_special(TokenId id) const override { return id == 'x'; }
    std::int32_t vocab_size() const override { return 256; }
    std::optional<TokenId> token_to_id(std::string_view /*token*/) const override { return std::nullopt; }
    std::string id_to_token(TokenId /*id*/) const override { return {}; }
    std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
    std::optional<TokenId> eos_token_id() const override { return std::nullopt; }

   private:
    std::string bytes_ = [] {
      std::string bytes;
      for (int byte = 0; byte < 256; ++byte) {
        bytes += static_cast<char>(byte);
      }
      return bytes;
    }();
  };
  const Bytes tokenizer;
  const Ids ids = encoded(tokenizer, "x\u00E9x\xFFy\xE2\x82");
  CHECK(streamed(tokenizer, ids, every_token(ids), true) == "\u00E9\uFFFDy\uFFFD");
  CHECK(streamed(tokenizer, ids, every_token(ids), false) == "x\u00E9x\uFFFDy\uFFFD");
}

}  // namespace
}  // namespace troupe::test
