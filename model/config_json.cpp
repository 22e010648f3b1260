#include "model/config_json.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/error_text.hpp"
#include "model/json_fields.hpp"
#include "model/json_file.hpp"
#include "model/rope_json.hpp"

namespace troupe {
namespace {

/// What transformers assumes for fields that a config.json lacks.
struct Family {
  std::string_view model_type;
  std::int32_t vocab_size;
  std::int32_t intermediate_size;
  /// 0 means as many as attention heads.
  std::int32_t num_key_value_heads;
  std::int32_t max_position_embeddings;
  /// 0 means full attention.
  std::int32_t sliding_window;
  std::optional<TokenId> bos_token_id;
  std::optional<TokenId> eos_token_id;
};
constexpr std::array kFamilies = std::to_array<Family>({
    {.model_type = "llama",
     .vocab_size = 32000,
     .intermediate_size = 11008,
     .num_key_value_heads = 0,
     .max_position_embeddings = 2048,
     .sliding_window = 0,
     .bos_token_id = 1,
     .eos_token_id = 2},
    {.model_type = "mistral",
     .vocab_size = 32000,
     .intermediate_size = 14336,
     .num_key_value_heads = 8,
     .max_position_embeddings = 131072,
     .sliding_window = 4096,
     .bos_token_id = 1,
     .eos_token_id = 2},
    {.model_type = "qwen2",
     .vocab_size = 151936,
     .intermediate_size = 22016,
     .num_key_value_heads = 32,
     .max_position_embeddings = 32768,
     .sliding_window = 4096,
     .bos_token_id = std::nullopt,
     .eos_token_id = std::nullopt},
});
constexpr std::int32_t kDefaultHiddenSize = 4096;
constexpr std::int32_t kDefaultNumLayers = 32;
constexpr std::int32_t kDefaultNumHeads = 32;

constexpr std::array kActivations = std::to_array<std::pair<std::string_view, Activation>>({
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},
});

/// Limits that keep products of sizes within 64 bits, an order of magnitude above any model.
constexpr std::int32_t kMaxVocabSize = 1 << 22;
constexpr std::int32_t kMaxHiddenSize = 1 << 20;
constexpr std::int32_t kMaxIntermediateSize = 1 << 22;
constexpr std::int32_t kMaxNumLayers = 1 << 12;
constexpr std::int32_t kMaxNumHeads = 1 << 14;
constexpr std::int32_t kMaxHeadDim = 1 << 14;

const Family* find_family(const JsonNode& model_type) {
  const std::string name = model_type.string();
  const auto* const family = std::ranges::find(kFamilies, name, &Family::model_type);
  if (family == kFamilies.end()) {
    model_type.refuse(ErrorCode::unsupported,
                      "expected one of " + supported_model_types() + ", found " + in_quotes(name));
    return nullptr;
  }
  return family;
}

std::int32_t size_or(const JsonNode& node, std::int32_t fallback) {
  return node.is_null() ? fallback : int32_in(node, 1);
}

Activation read_activation(const JsonNode& node) {
  const std::string name = node.string_or("silu");
  const auto* const known = std::ranges::find(kActivations, name, &std::pair<std::string_view, Activation>::first);
  if (known == kActivations.end()) {
    node.refuse(ErrorCode::unsupported, "the activation " + in_quotes(name) + " is not supported");
    return Activation::silu;
  }
  return known->second;
}

/// `layer_types` as the configuration spells them.
std::vector<AttentionType> read_layer_types(const JsonNode& node) {
  std::vector<AttentionType> types;
  for (const JsonNode& element : node.elements()) {
    const std::string name = element.string();
    if (name != "full_attention" && name != "sliding_attention") {
      element.refuse(ErrorCode::unsupported,
                     R"(expected "full_attention" or "sliding_attention", found )" + in_quotes(name));
    }
    types.push_back(name == "sliding_attention" ? AttentionType::sliding : AttentionType::full);
  }
  return types;
}

/// Layer types and window. Mistral slides in all layers, if it has a window; Qwen2 where `layer_types` says so or from
/// `max_window_layers` upwards, and only if `use_sliding_window` is set.
void read_attention(const JsonNode& root, const Family& family, ModelConfig& config) {
  const bool is_qwen2 = family.model_type == "qwen2";
  const bool may_slide = is_qwen2 ? root["use_sliding_window"].boolean_or(false) : family.sliding_window > 0;
  if (const JsonNode window = root["sliding_window"]; may_slide && !window.is_null()) {
    config.sliding_window = int32_in(window, 1);
  } else if (may_slide && !has_key(root, "sliding_window")) {
    config.sliding_window = family.sliding_window;
  }
  const auto num_layers = static_cast<std::size_t>(config.num_hidden_layers);
  const bool slides = config.sliding_window > 0;
  config.layer_types.assign(num_layers, slides ? AttentionType::sliding : AttentionType::full);
  if (is_qwen2 && slides) {
    const JsonNode node = root["max_window_layers"];
    const std::int32_t full = node.is_null() ? 28 : int32_in(node, 0);
    std::fill_n(config.layer_types.begin(), std::min<std::size_t>(full, num_layers), AttentionType::full);
  }
  if (const JsonNode node = root["layer_types"]; !node.is_null()) {
    const std::vector<AttentionType> types = read_layer_types(node);
    if (types.size() != num_layers) {
      node.refuse(ErrorCode::malformed_file, "expected one for each of " + std::to_string(num_layers) +
                                                 " layers, found " + std::to_string(types.size()));
    } else if (is_qwen2 && (slides || std::ranges::count(types, AttentionType::sliding) == 0)) {
      config.layer_types = types;
    } else if (types != config.layer_types) {
      node.refuse(ErrorCode::unsupported, "these types do not go with the model type and sliding_window");
    }
  }
  // No sequence outgrows such a window, and full attention can share prefixes.
  if (config.sliding_window >= config.max_position_embeddings) {
    config.layer_types.assign(num_layers, AttentionType::full);
  }
  if (std::ranges::count(config.layer_types, AttentionType::sliding) == 0) {
    config.sliding_window = 0;
  }
}

void refuse_unsupported(const JsonNode& root) {
  for (const std::string_view key : {"quantization_config", "per_layer_config"}) {
    if (const JsonNode node = root[key]; !node.is_null()) {
      node.refuse(ErrorCode::unsupported, "not supported");
    }
  }
}

void read_sizes(const JsonNode& root, const Family& family, ModelConfig& config) {
  config.vocab_size = size_or(root["vocab_size"], family.vocab_size);
  config.hidden_size = size_or(root["hidden_size"], kDefaultHiddenSize);
  config.intermediate_size = size_or(root["intermediate_size"], family.intermediate_size);
  const JsonNode num_layers = root["num_hidden_layers"];
  config.num_hidden_layers = num_layers.is_null() ? kDefaultNumLayers : int32_in(num_layers, 1, kMaxNumLayers);
  config.num_attention_heads = size_or(root["num_attention_heads"], kDefaultNumHeads);
  const bool has_kv_heads = has_key(root, "num_key_value_heads");
  const std::int32_t kv_heads = has_kv_heads ? 0 : family.num_key_value_heads;
  config.num_key_value_heads =
      size_or(root["num_key_value_heads"], kv_heads == 0 ? config.num_attention_heads : kv_heads);
  const JsonNode head_dim = root["head_dim"];
  if (head_dim.is_null() && config.hidden_size % config.num_attention_heads != 0) {
    head_dim.refuse(ErrorCode::malformed_file, "not given, and hidden_size (" + std::to_string(config.hidden_size) +
                                                   ") is not a multiple of num_attention_heads (" +
                                                   std::to_string(config.num_attention_heads) + ")");
  }
  config.head_dim = size_or(head_dim, config.hidden_size / config.num_attention_heads);
  config.max_position_embeddings = size_or(root["max_position_embeddings"], family.max_position_embeddings);
}

ModelConfig read_config(const JsonNode& root, const Family& family) {
  ModelConfig config;
  config.model_type = family.model_type;
  refuse_unsupported(root);
  read_sizes(root, family, config);
  if (const JsonNode epsilon = root["rms_norm_eps"]; !epsilon.is_null()) {
    config.rms_norm_eps = number_in(epsilon, 0.0, 1.0);
  }
  config.rope = read_rope(root, config.max_position_embeddings);
  config.activation = read_activation(root["hidden_act"]);
  if (family.model_type == "llama") {
    config.attention_bias = root["attention_bias"].boolean_or(false);
    config.attention_output_bias = config.attention_bias;
    config.mlp_bias = root["mlp_bias"].boolean_or(false);
  } else {
    config.attention_bias = family.model_type == "qwen2";
  }
  config.tie_word_embeddings = root["tie_word_embeddings"].boolean_or(false);
  read_attention(root, family, config);
  if (const JsonNode bos = root["bos_token_id"]; !bos.is_null()) {
    config.bos_token_id = int32_in(bos, 0, config.vocab_size - 1);
  } else if (!has_key(root, "bos_token_id")) {
    config.bos_token_id = family.bos_token_id;
  }
  config.eos_token_ids = token_ids(root["eos_token_id"], config.vocab_size);
  if (family.eos_token_id && !has_key(root, "eos_token_id")) {
    config.eos_token_ids = {*family.eos_token_id};
  }
  return config;
}

}  // namespace

std::string supported_model_types() {
  std::string list;
  for (const Family& family : kFamilies) {
    list += (list.empty() ? "\"" : ", \"") + std::string(family.model_type) + "\"";
  }
  return list;
}

Result<ModelConfig> parse_config(std::string_view text) {
  const Result<nlohmann::json> document = parse_json(text);
  if (!document) {
    return tl::unexpected(document.error());
  }
  JsonProblem problem;
  const JsonNode root(*document, "", problem);
  const Family* family = find_family(root["model_type"]);
  if (family == nullptr) {
    return tl::unexpected(*problem.error);
  }
  ModelConfig config = read_config(root, *family);
  if (problem.error) {
    return tl::unexpected(*problem.error);
  }
  if (Result<void> checked = check_config(config); !checked) {
    return tl::unexpected(std::move(checked).error());
  }
  return config;
}

Result<GenerationConfig> parse_generation_config(std::string_view text, std::int32_t vocab_size) {
  const Result<nlohmann::json> document = parse_json(text);
  if (!document) {
    return tl::unexpected(document.error());
  }
  JsonProblem problem;
  const JsonNode root(*document, "", problem);
  GenerationConfig config;
  config.eos_token_ids = token_ids(root["eos_token_id"], vocab_size);
  GenerationDefaults& defaults = config.defaults;
  if (const JsonNode node = root["max_new_tokens"]; !node.is_null()) {
    defaults.max_new_tokens = int32_in(node, 1);
  }
  if (const JsonNode node = root["do_sample"]; !node.is_null()) {
    defaults.do_sample = node.boolean();
  }
  if (const JsonNode node = root["temperature"]; !node.is_null()) {
    defaults.temperature = static_cast<float>(number_in(node, 0.0, std::numeric_limits<float>::max()));
  }
  if (const JsonNode node = root["top_k"]; !node.is_null()) {
    defaults.top_k = int32_in(node, -1);
  }
  if (const JsonNode node = root["top_p"]; !node.is_null()) {
    defaults.top_p = static_cast<float>(number_in(node, 0.0, 1.0));
  }
  if (const JsonNode node = root["min_p"]; !node.is_null()) {
    defaults.min_p = static_cast<float>(number_in(node, 0.0, 1.0));
  }
  if (problem.error) {
    return tl::unexpected(*problem.error);
  }
  return config;
}

Result<void> check_config(const ModelConfig& config) {
  struct Size {
    std::string_view name;
    std::int32_t value;
    std::int32_t max;
  };
  const auto sizes = std::to_array<Size>({
      {"vocab_size", config.vocab_size, kMaxVocabSize},
      {"hidden_size", config.hidden_size, kMaxHiddenSize},
      {"intermediate_size", config.intermediate_size, kMaxIntermediateSize},
      {"num_hidden_layers", config.num_hidden_layers, kMaxNumLayers},
      {"num_attention_heads", config.num_attention_heads, kMaxNumHeads},
      {"num_key_value_heads", config.num_key_value_heads, config.num_attention_heads},
      {"head_dim", config.head_dim, kMaxHeadDim},
      {"max_position_embeddings", config.max_position_embeddings, std::numeric_limits<std::int32_t>::max()},
  });
  for (const Size& size : sizes) {
    if (size.value < 1 || size.value > size.max) {
      return fail(ErrorCode::malformed_file, std::string(size.name) + ": expected a number from 1 to " +
                                                 std::to_string(size.max) + ", found " + std::to_string(size.value));
    }
  }
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return fail(ErrorCode::malformed_file, "num_attention_heads: expected a multiple of num_key_value_heads (" +
                                               std::to_string(config.num_key_value_heads) + "), found " +
                                               std::to_string(config.num_attention_heads));
  }
  if (config.head_dim % 2 != 0) {
    return fail(ErrorCode::malformed_file,
                "head_dim: expected an even number, found " + std::to_string(config.head_dim));
  }
  std::vector<TokenId> ids = config.eos_token_ids;
  ids.push_back(config.bos_token_id.value_or(0));
  for (const TokenId id : ids) {
    if (id < 0 || id >= config.vocab_size) {
      return fail(ErrorCode::malformed_file, "bos_token_id and eos_token_id: expected ids below vocab_size (" +
                                                 std::to_string(config.vocab_size) + "), found " + std::to_string(id));
    }
  }
  return {};
}

}  // namespace troupe
