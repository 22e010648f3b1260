#include "model/rope_json.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/error_text.hpp"
#include "model/json_fields.hpp"

namespace troupe {
namespace {

constexpr std::array kScalingTypes = std::to_array<std::pair<std::string_view, RopeScalingType>>({
    {"default", RopeScalingType::none},
    {"linear", RopeScalingType::linear},
    {"dynamic", RopeScalingType::dynamic},
    {"yarn", RopeScalingType::yarn},
    {"llama3", RopeScalingType::llama3},
});

/// `rope_type` goes before `type`, its older name.
RopeScalingType read_scaling_type(const JsonNode& parameters) {
  const JsonNode older = parameters["type"];
  const JsonNode newer = parameters["rope_type"];
  const JsonNode& node = newer.is_null() ? older : newer;
  const std::string name = node.string_or("default");
  for (const auto& [known, type] : kScalingTypes) {
    if (name == known) {
      return type;
    }
  }
  node.refuse(ErrorCode::unsupported,
              R"(expected "default", "linear", "dynamic", "yarn" or "llama3", found )" + in_quotes(name));
  return RopeScalingType::none;
}

void refuse_unsupported(const JsonNode& object) {
  if (const JsonNode partial = object["partial_rotary_factor"]; !partial.is_null() && partial.number() != 1.0) {
    partial.refuse(ErrorCode::unsupported, "only heads that rotate as a whole (1) are supported");
  }
  for (const std::string_view key : {"full_attention", "sliding_attention"}) {
    if (const JsonNode nested = object[key]; !nested.is_null()) {
      nested.refuse(ErrorCode::unsupported, "rotary parameters for each layer type are not supported");
    }
  }
}

std::optional<double> optional_number(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(number_in(node, 0.0));
}

/// A number that transformers takes as not given when it is 0.
double number_or(const JsonNode& node, double fallback) {
  const double value = optional_number(node).value_or(fallback);
  return value == 0.0 ? fallback : value;
}

}  // namespace

RopeConfig read_rope(const JsonNode& config, std::int32_t max_position_embeddings) {
  RopeConfig rope;
  refuse_unsupported(config);
  const JsonNode old_style = config["rope_scaling"];
  const bool is_old_style = !old_style.is_null() && !old_style.keys().empty();
  const JsonNode parameters = is_old_style ? old_style : config["rope_parameters"];
  if (const JsonNode theta = config["rope_theta"]; !theta.is_null()) {
    rope.theta = number_above(theta, 1.0);
  }
  if (parameters.is_null()) {
    return rope;
  }
  refuse_unsupported(parameters);
  if (const JsonNode theta = parameters["rope_theta"]; !theta.is_null()) {
    rope.theta = number_above(theta, 1.0);
  }
  rope.scaling = read_scaling_type(parameters);
  if (rope.scaling == RopeScalingType::none) {
    return rope;
  }
  if (rope.scaling == RopeScalingType::yarn || rope.scaling == RopeScalingType::llama3) {
    const JsonNode outside = config["original_max_position_embeddings"];
    const JsonNode inside = parameters["original_max_position_embeddings"];
    const JsonNode& original = outside.is_null() ? inside : outside;
    rope.original_max_position_embeddings = original.is_null() ? max_position_embeddings : int32_in(original, 1);
  }
  const JsonNode factor = parameters["factor"];
  if (rope.scaling == RopeScalingType::yarn && factor.is_null() && has_key(parameters, "factor")) {
    rope.factor = static_cast<double>(max_position_embeddings) / rope.original_max_position_embeddings;
  } else {
    rope.factor = number_above(factor, 0.0);
  }
  if (rope.scaling == RopeScalingType::llama3) {
    rope.low_freq_factor = number_above(parameters["low_freq_factor"], 0.0);
    rope.high_freq_factor = number_above(parameters["high_freq_factor"], rope.low_freq_factor);
  }
  if (rope.scaling == RopeScalingType::yarn) {
    rope.beta_fast = number_or(parameters["beta_fast"], rope.beta_fast);
    rope.beta_slow = number_or(parameters["beta_slow"], rope.beta_slow);
    rope.attention_factor = optional_number(parameters["attention_factor"]);
    rope.mscale = optional_number(parameters["mscale"]);
    rope.mscale_all_dim = optional_number(parameters["mscale_all_dim"]);
    rope.truncate = parameters["truncate"].boolean_or(true);
  }
  return rope;
}

}  // namespace troupe
