#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/bpe_tokenizer.hpp"
#include "model/tokenizer_loader.hpp"
#include "model/utf8.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"
#include "tokenizer_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    text += part;
  }
  return text;
}

std::unique_ptr<Tokenizer> variant_tokenizer(const std::vector<json>& variants, std::string_view name) {
  const auto variant = std::ranges::find_if(variants, [&](const json& item) { return item.at("name") == name; });
  REQUIRE(variant != variants.end());
  json document = base_tokenizer(variant->at("base"));
  document.merge_patch(variant->at("patch"));
  return load_document(document);
}

TEST_CASE("Texts that are too long or not valid UTF-8 are refused") {
  const auto tokenizer = load_document(base_tokenizer("byte_level"));
  auto ids = tokenizer->encode(std::string(std::size_t{200} << 20U, ' '), false);
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == ErrorCode::request_too_long);
  CHECK_THAT(ids.error().message, Catch::Contains("209715200") && Catch::Contains("16777216"));
  for (const auto& [text, offset] :
       {std::pair("ab\xFF", "byte 2"), std::pair("\xC3", "byte 0"), std::pair("a\xED\xA0\x80", "byte 1"),
        std::pair("abc\xF4\x90\x80\x80", "byte 3")}) {
    ids = tokenizer->encode(text, true);
    REQUIRE_FALSE(ids);
    CHECK(ids.error().code == ErrorCode::invalid_request);
    CHECK_THAT(ids.error().message, Catch::Contains(offset));
  }
  CHECK(encoded(*tokenizer, std::string_view("\0", 1)).size() <= 1);
}

/// A step that is quadratic would take hours, and the test's time limit ends it.
TEST_CASE("A megabyte of one thing is tokenized in a time that grows with its size") {
  const std::vector<json> variants = read_json_lines("tokenizers/variants.jsonl.gz");
  constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
  for (const std::string_view name : {"llama3", "digits_gpt2", "qwen2_nfc", "metaspace_whole", "gemma"}) {
    INFO(name);
    const auto tokenizer = variant_tokenizer(variants, name);
    for (const std::string_view part : {" ", "a", "<s>", " <left>", "7", "e\u0301"}) {
      CAPTURE(part);
      const std::string text = repeated(part, kMegabyte / 2);
      const Ids ids = encoded(*tokenizer, text);
      if (name == "gemma" && part != " <left>") {
        const bool is_same = tokenizer->decode(ids, false) == text;
        CHECK(is_same);
      }
    }
    const Ids spaces = encoded(*tokenizer, std::string(kMegabyte, ' '));
    CHECK(spaces.size() <= kMegabyte + 1);
  }
}

TEST_CASE("Endless combining marks are refused where they would have to be sorted") {
  const auto tokenizer = variant_tokenizer(read_json_lines("tokenizers/variants.jsonl.gz"), "qwen2_nfc");
  CHECK(tokenizer->encode("e" + repeated("\u0301", 100), false));
  const auto ids = tokenizer->encode("e" + repeated("\u0301\u0316", 1000000), false);
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == ErrorCode::invalid_request);
  CHECK_THAT(ids.error().message, Catch::Contains("combining marks"));
}

TEST_CASE("A regular expression that backtracks without end gives up with an error") {
  json document = base_tokenizer("byte_level");
  document["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?:a|aa)+b"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const auto tokenizer = load_document(document);
  CHECK(tokenizer->encode("aaab", false));
  const auto ids = tokenizer->encode(std::string(60, 'a') + "!b", false);
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == ErrorCode::invalid_request);
  CHECK_THAT(ids.error().message, Catch::Contains("cannot be split"));
}

TEST_CASE("Threads that share tokenizers get what one thread gets") {
  const std::vector<json> variants = read_json_lines("tokenizers/variants.jsonl.gz");
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  std::vector<const json*> cases;
  for (const json& variant : variants) {
    json document = base_tokenizer(variant.at("base"));
    document.merge_patch(variant.at("patch"));
    tokenizers.push_back(load_document(document));
    cases.push_back(&variant.at("cases"));
  }
  std::atomic<int> num_wrong = 0;
  std::atomic<int> num_checked = 0;
  const auto work = [&](std::size_t thread) {
    for (std::size_t i = 0; i < tokenizers.size(); ++i) {
      const std::size_t chosen = (i + thread) % tokenizers.size();
      const Tokenizer& tokenizer = *tokenizers[chosen];
      for (const json& item : *cases[chosen]) {
        const auto ids = tokenizer.encode(item.at(0).get_ref<const std::string&>(), true);
        const bool right = ids && *ids == item.at(2).get<Ids>() &&
                           (item.at(3).is_null() || tokenizer.decode(*ids, false) == item.at(3).get<std::string>());
        num_wrong += right ? 0 : 1;
        ++num_checked;
      }
      // Loading while others search.
      if (i % 10 == 0 && !load_text(base_tokenizer("byte_level").dump())) {
        ++num_wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back(work, thread);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(num_wrong == 0);
  CHECK(num_checked > 10000);
}

TEST_CASE("A damaged tokenizer.json is refused or works") {
  const std::uint64_t seed = test_seed();
  INFO("TROUPE_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr std::string_view kBytes = "\"{}[],:0123456789-e.atrufnls \\\xC3\xA9\x01";
  for (int round = 0; round < 400; ++round) {
    std::string text = base_tokenizer(round % 2 == 0 ? "byte_level" : "byte_fallback").dump();
    // The components are a small part of the text, so half of the rounds damage only what is not the vocabulary.
    const std::size_t end = round % 4 < 2 ? text.size() : text.find("\"model\"");
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % end;
      switch (random() % 3) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    CAPTURE(round);
    const auto tokenizer = load_text(text);
    if (!tokenizer) {
      CHECK_THAT(tokenizer.error().message, Catch::Contains("tokenizer.json"));
      CHECK_FALSE(find_invalid_utf8(tokenizer.error().message));
      continue;
    }
    const auto ids = (*tokenizer)->encode("<s> na\u00EFve caf\u00E9 \uC0BC 123 the</s>", true);
    if (ids) {
      CHECK_FALSE(find_invalid_utf8((*tokenizer)->decode(*ids, false)));
    }
  }
}

}  // namespace
}  // namespace troupe::test
