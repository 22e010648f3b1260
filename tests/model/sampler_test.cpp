#include "model/sampler.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "model/philox.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// How often each token is drawn in 4,000 positions.
std::map<TokenId, int> draw(const std::vector<float>& logits, const SamplingParams& params) {
  Sampler sampler;
  std::map<TokenId, int> counts;
  for (int position = 0; position < 4000; ++position) {
    const auto sampled = sampler.sample(logits, params, position);
    REQUIRE(sampled);
    ++counts[sampled->token];
  }
  return counts;
}

// Known answers of the generator's authors (Random123, kat_vectors).
TEST_CASE("philox gives the known answers") {
  using Block = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  CHECK(philox4x32({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}, {0xffffffffU, 0xffffffffU}) ==
        Block{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
  CHECK(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}) ==
        Block{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});
}

TEST_CASE("greedy takes the largest logit and the lowest id of equals") {
  Sampler sampler;
  const std::vector<float> logits = {1.0F, 3.0F, 3.0F, -2.0F};
  const auto sampled = sampler.sample(logits, {.return_logprobs = true}, 0);
  REQUIRE(sampled);
  CHECK(sampled->token == 1);
  const double sum = std::exp(-2.0) + 2.0 + std::exp(-5.0);
  CHECK(sampled->logprob == Approx(-std::log(sum)).margin(1e-6));
}

// B62
TEST_CASE("tiny temperatures are greedy") {
  Sampler sampler;
  const std::vector<float> logits = {0.5F, 0.6F, 0.4F};
  for (const float temperature : {0.0F, 1e-4F, 1e-8F, 1e-30F, 1e-45F}) {
    for (int position = 0; position < 50; ++position) {
      CHECK(sampler.sample(logits, {.temperature = temperature, .seed = 3}, position)->token == 1);
    }
  }
}

TEST_CASE("frequencies follow the softmax at the temperature") {
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(5.0F)};
  const auto counts = draw(logits, {.temperature = 1.0F, .seed = 11});
  CHECK(std::abs(counts.at(0) - 500) < 90);
  CHECK(std::abs(counts.at(1) - 1000) < 120);
  CHECK(std::abs(counts.at(2) - 2500) < 140);
}

TEST_CASE("top-k keeps k tokens") {
  const std::vector<float> logits = {1.0F, 1.1F, 1.2F, 1.3F};
  CHECK(draw(logits, {.temperature = 1.0F, .top_k = 2}).size() == 2);
  CHECK(draw(logits, {.temperature = 1.0F, .top_k = 1}).begin()->first == 3);
  CHECK(draw(logits, {.temperature = 1.0F, .top_k = 0}).size() == 4);
  // B60: more than the vocabulary keeps all.
  CHECK(draw(logits, {.temperature = 1.0F, .top_k = 100}).size() == 4);
}

TEST_CASE("top-p keeps the smallest set that reaches it") {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.2F), std::log(0.5F), std::log(0.3F)};
  CHECK(draw(logits, {.temperature = 1.0F, .top_p = 0.49F}).size() == 1);
  CHECK(draw(logits, {.temperature = 1.0F, .top_p = 0.6F}).size() == 2);
  CHECK(draw(logits, {.temperature = 1.0F, .top_p = 0.9F}).size() == 3);
}

TEST_CASE("min-p drops what is far less likely than the most likely") {
  const std::vector<float> logits = {0.0F, std::log(0.5F), std::log(0.05F)};
  CHECK(draw(logits, {.temperature = 1.0F, .min_p = 0.1F}).size() == 2);
  CHECK(draw(logits, {.temperature = 1.0F, .min_p = 1.0F}).size() == 1);
}

TEST_CASE("seed and position alone decide") {
  Sampler one;
  Sampler other;
  const std::vector<float> logits = {0.1F, 0.2F, 0.3F, 0.4F};
  (void)other.sample(logits, {.temperature = 1.0F, .seed = 99}, 4);
  int different = 0;
  for (int position = 0; position < 100; ++position) {
    const SamplingParams params{.temperature = 1.0F, .seed = 5};
    CHECK(one.sample(logits, params, position)->token == other.sample(logits, params, position)->token);
    different += one.sample(logits, params, position)->token !=
                         one.sample(logits, {.temperature = 1.0F, .seed = 6}, position)->token
                     ? 1
                     : 0;
  }
  CHECK(different > 30);
}

TEST_CASE("logits that are not numbers are an error") {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0F, 1.0F}) {
    CHECK_FALSE(sampler.sample(std::vector<float>{1.0F, nan, 0.0F}, {.temperature = temperature}, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{nan, 1.0F, 0.0F}, {.temperature = temperature}, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{1.0F, kInfinity}, {.temperature = temperature}, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{-kInfinity, -kInfinity}, {.temperature = temperature}, 0));
    // A single one that is impossible is fine.
    CHECK(sampler.sample(std::vector<float>{1.0F, -kInfinity}, {.temperature = temperature}, 0)->token == 0);
  }
}

}  // namespace
}  // namespace troupe::test
