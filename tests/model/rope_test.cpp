#include "model/rope.hpp"

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/golden_models.hpp"

namespace troupe::test {
namespace {

RopeConfig read_config(const nlohmann::json& parameters) {
  RopeConfig config;
  const std::string type = parameters.at("rope_type");
  config.scaling = type == "linear"   ? RopeScalingType::linear
                   : type == "llama3" ? RopeScalingType::llama3
                   : type == "yarn"   ? RopeScalingType::yarn
                                      : RopeScalingType::none;
  config.theta = parameters.at("rope_theta");
  config.factor = parameters.value("factor", 1.0);
  config.low_freq_factor = parameters.value("low_freq_factor", 1.0);
  config.high_freq_factor = parameters.value("high_freq_factor", 4.0);
  config.original_max_position_embeddings = parameters.value("original_max_position_embeddings", 0);
  config.beta_fast = parameters.value("beta_fast", 32.0);
  config.beta_slow = parameters.value("beta_slow", 1.0);
  if (parameters.contains("attention_factor")) {
    config.attention_factor = parameters.at("attention_factor").get<double>();
  }
  return config;
}

TEST_CASE("every rope scaling gives the frequencies of transformers") {
  std::ifstream file(golden_path("rope/expected.json"));
  REQUIRE(file);
  const nlohmann::json document = nlohmann::json::parse(file);
  REQUIRE(document.at("cases").size() == 6);
  for (const nlohmann::json& item : document.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const auto rope = RotaryEmbedding::make(read_config(item.at("parameters")), item.at("head_dim"));
    REQUIRE(rope);
    const std::vector<double> expected = item.at("inverse_frequencies");
    REQUIRE(rope->inverse_frequencies().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(rope->inverse_frequencies()[i] == Approx(expected[i]).epsilon(1e-6));
    }
    CHECK(rope->attention_factor() == Approx(item.at("attention_factor").get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("cosines and sines are those of position times frequency") {
  const auto rope = RotaryEmbedding::make({}, 8);
  REQUIRE(rope);
  const std::vector<std::int32_t> positions = {0, 5, 1000};
  std::vector<float> cosines(12);
  std::vector<float> sines(12);
  rope->fill(positions, cosines, sines);
  for (std::size_t p = 0; p < positions.size(); ++p) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double angle = positions[p] * std::pow(10000.0, -static_cast<double>(i) / 4.0);
      CHECK(cosines[p * 4 + i] == Approx(std::cos(angle)).margin(1e-4));
      CHECK(sines[p * 4 + i] == Approx(std::sin(angle)).margin(1e-4));
    }
  }
}

TEST_CASE("a scaling that makes no sense is an error that names its field") {
  RopeConfig config;
  config.scaling = RopeScalingType::linear;
  config.factor = 0.0;
  const auto rope = RotaryEmbedding::make(config, 64);
  REQUIRE_FALSE(rope);
  CHECK(rope.error().message.find("factor") != std::string::npos);
  CHECK_FALSE(RotaryEmbedding::make({}, 7));
}

}  // namespace
}  // namespace troupe::test
