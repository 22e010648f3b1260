#include "model/gguf_config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config_json.hpp"
#include "model/dequantize.hpp"
#include "model/error_text.hpp"
#include "model/gguf_metadata.hpp"

namespace troupe {
namespace {

constexpr std::string_view kFrequencyFactorsName = "rope_freqs.weight";

/// What llama.cpp's converter makes of llama3's parameters: by how much each frequency is divided.
double llama3_divisor(const RopeConfig& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double original = rope.original_max_position_embeddings;
  if (wavelength < original / rope.high_freq_factor) {
    return 1.0;
  }
  if (wavelength > original / rope.low_freq_factor) {
    return rope.factor;
  }
  const double smooth = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return 1.0 / ((1.0 - smooth) / rope.factor + smooth);
}

/// Finds the scaling that gives `divisors`, one for each frequency. All llama3 models share the parameters but the
/// factor.
Result<void> set_scaling_from(const std::vector<float>& divisors, RopeConfig& rope) {
  RopeConfig llama3 = rope;
  llama3.scaling = RopeScalingType::llama3;
  llama3.factor = *std::ranges::max_element(divisors);
  llama3.low_freq_factor = 1.0;
  llama3.high_freq_factor = 4.0;
  llama3.original_max_position_embeddings = 8192;
  if (std::ranges::all_of(divisors, [](float divisor) { return divisor == 1.0F; })) {
    return {};
  }
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double frequency = std::pow(rope.theta, -static_cast<double>(i) / static_cast<double>(divisors.size()));
    const double expected = llama3_divisor(llama3, frequency);
    if (!(std::abs(divisors[i] - expected) <= 1e-4 * expected)) {
      return fail(ErrorCode::unsupported,
                  "tensor " + in_quotes(kFrequencyFactorsName) +
                      ": expected the factors of a llama3 scaling (for low_freq_factor 1, high_freq_factor 4, " +
                      "original_max_position_embeddings 8192 and factor " + std::to_string(llama3.factor) + " factor " +
                      std::to_string(i) + " is " + std::to_string(expected) + "), found " +
                      std::to_string(divisors[i]));
    }
  }
  rope = llama3;
  return {};
}

Result<void> read_frequency_factors(const GgufFile& file, std::int32_t head_dim, RopeConfig& rope) {
  const auto entry = file.tensors.find(kFrequencyFactorsName);
  if (entry == file.tensors.end()) {
    return {};
  }
  const GgufTensor& tensor = entry->second;
  if (tensor.dtype != DType::f32 || tensor.shape != std::vector<std::int64_t>{head_dim / 2}) {
    return fail(ErrorCode::malformed_file, "tensor " + in_quotes(kFrequencyFactorsName) + ": expected F32 " +
                                               to_text(std::vector<std::int64_t>{head_dim / 2}) + ", found " +
                                               std::string(to_string(tensor.dtype)) + " " + to_text(tensor.shape));
  }
  if (rope.scaling != RopeScalingType::none) {
    return fail(ErrorCode::unsupported,
                "tensor " + in_quotes(kFrequencyFactorsName) + ": together with a rope.scaling.type not supported");
  }
  std::vector<float> divisors(static_cast<std::size_t>(head_dim / 2));
  convert_to_f32(DType::f32, tensor.bytes, divisors);
  return set_scaling_from(divisors, rope);
}

/// Reads the keys of one architecture, "<architecture>.<key>".
class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, std::string architecture)
      : metadata_(file), file_(&file), architecture_(std::move(architecture)) {}

  Result<ModelConfig> read() {
    ModelConfig config;
    config.model_type = architecture_;
    refuse_unsupported();
    read_sizes(config);
    config.rms_norm_eps = metadata_.required(key("attention.layer_norm_rms_epsilon"),
                                             metadata_.number(key("attention.layer_norm_rms_epsilon")));
    config.rope = read_rope(config.max_position_embeddings);
    config.attention_bias = file_->tensors.contains("blk.0.attn_q.bias");
    config.attention_output_bias = file_->tensors.contains("blk.0.attn_output.bias");
    config.mlp_bias = file_->tensors.contains("blk.0.ffn_up.bias");
    config.tie_word_embeddings = !file_->tensors.contains("output.weight");
    config.bos_token_id = metadata_.int32("tokenizer.ggml.bos_token_id");
    for (const std::string_view name : {"eos", "eot", "eom"}) {
      const auto id = metadata_.int32("tokenizer.ggml." + std::string(name) + "_token_id");
      if (id && std::ranges::find(config.eos_token_ids, *id) == config.eos_token_ids.end()) {
        config.eos_token_ids.push_back(*id);
      }
    }
    if (metadata_.problem()) {
      return tl::unexpected(*metadata_.problem());
    }
    if (Result<void> checked = check_config(config); !checked) {
      return tl::unexpected(std::move(checked).error());
    }
    config.layer_types.assign(static_cast<std::size_t>(config.num_hidden_layers), AttentionType::full);
    if (Result<void> scaled = read_frequency_factors(*file_, config.head_dim, config.rope); !scaled) {
      return tl::unexpected(std::move(scaled).error());
    }
    return config;
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

  std::int32_t required(std::string_view name) { return metadata_.required(key(name), metadata_.int32(key(name))); }

  /// Variants of the architecture that other keys than ours describe.
  void refuse_unsupported() {
    for (const std::string_view name : {"expert_count", "attention.sliding_window"}) {
      if (metadata_.int32(key(name)).value_or(0) != 0) {
        metadata_.refuse(ErrorCode::unsupported, key(name), "not supported");
      }
    }
    for (const std::string_view name :
         {"logit_scale", "embedding_scale", "residual_scale", "attention.scale", "attn_logit_softcapping",
          "final_logit_softcapping", "rope.scaling.attn_factor", "rope.scaling.yarn_log_multiplier",
          "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}) {
      if (metadata_.contains(key(name))) {
        metadata_.refuse(ErrorCode::unsupported, key(name), "not supported");
      }
    }
  }

  void read_sizes(ModelConfig& config) {
    const std::string vocab_key = key("vocab_size");
    config.vocab_size = metadata_.contains(vocab_key)
                            ? metadata_.int32(vocab_key).value_or(0)
                            : static_cast<std::int32_t>(
                                  std::min<std::size_t>(metadata_.strings("tokenizer.ggml.tokens").size(), 0x7FFFFFFF));
    config.hidden_size = required("embedding_length");
    config.intermediate_size = required("feed_forward_length");
    config.num_hidden_layers = required("block_count");
    config.num_attention_heads = required("attention.head_count");
    config.num_key_value_heads = metadata_.int32(key("attention.head_count_kv")).value_or(config.num_attention_heads);
    config.max_position_embeddings = required("context_length");
    const auto heads = std::max(config.num_attention_heads, 1);
    config.head_dim = metadata_.int32(key("attention.key_length")).value_or(config.hidden_size / heads);
    for (const std::string_view name : {"attention.value_length", "rope.dimension_count"}) {
      const auto size = metadata_.int32(key(name));
      if (size && *size != config.head_dim) {
        metadata_.refuse(ErrorCode::unsupported, key(name),
                         "only the size of a head (" + std::to_string(config.head_dim) + ") is supported, found " +
                             std::to_string(*size));
      }
    }
  }

  RopeConfig read_rope(std::int32_t max_position_embeddings) {
    RopeConfig rope;
    rope.theta = metadata_.number(key("rope.freq_base")).value_or(rope.theta);
    if (!(rope.theta > 1.0)) {
      metadata_.refuse(ErrorCode::malformed_file, key("rope.freq_base"), "expected a number above 1");
    }
    const std::string factor_key =
        metadata_.contains(key("rope.scale_linear")) ? "rope.scale_linear" : "rope.scaling.factor";
    const double factor = metadata_.number(key(factor_key)).value_or(1.0);
    const std::string type = metadata_.string(key("rope.scaling.type")).value_or(factor == 1.0 ? "none" : "linear");
    if (type == "none") {
      return rope;
    }
    if (!(factor > 0.0)) {
      metadata_.refuse(ErrorCode::malformed_file, key(factor_key), "expected a positive number");
    }
    rope.factor = factor;
    if (type == "linear") {
      rope.scaling = RopeScalingType::linear;
    } else if (type == "yarn") {
      rope.scaling = RopeScalingType::yarn;
      rope.original_max_position_embeddings =
          metadata_.int32(key("rope.scaling.original_context_length")).value_or(max_position_embeddings);
      if (rope.original_max_position_embeddings == 0) {
        metadata_.refuse(ErrorCode::malformed_file, key("rope.scaling.original_context_length"),
                         "expected a positive number");
      }
    } else {
      metadata_.refuse(ErrorCode::unsupported, key("rope.scaling.type"),
                       R"(expected "none", "linear" or "yarn", found )" + in_quotes(type));
    }
    return rope;
  }

  GgufMetadata metadata_;
  const GgufFile* file_;
  std::string architecture_;
};

}  // namespace

Result<ModelConfig> read_gguf_config(const GgufFile& file) {
  constexpr std::string_view kKey = "general.architecture";
  GgufMetadata metadata(file);
  const std::string architecture = metadata.required(kKey, metadata.string(kKey));
  if (!metadata.problem() && architecture != "llama" && architecture != "qwen2") {
    metadata.refuse(ErrorCode::unsupported, kKey,
                    R"(expected one of "llama", "qwen2", found )" + in_quotes(architecture));
  }
  if (metadata.problem()) {
    return tl::unexpected(*metadata.problem());
  }
  return ConfigReader(file, architecture).read();
}

Result<std::optional<GgufVocabulary>> read_gguf_vocabulary(const GgufFile& file) {
  GgufMetadata metadata(file);
  const auto key = [](std::string_view name) { return "tokenizer.ggml." + std::string(name); };
  GgufVocabulary vocabulary;
  vocabulary.model = metadata.string(key("model")).value_or("");
  vocabulary.pre = metadata.string(key("pre")).value_or("");
  vocabulary.tokens = metadata.strings(key("tokens"));
  vocabulary.token_types = metadata.int32s(key("token_type"));
  vocabulary.scores = metadata.floats(key("scores"));
  vocabulary.merges = metadata.strings(key("merges"));
  vocabulary.bos_token_id = metadata.int32(key("bos_token_id"));
  vocabulary.eos_token_id = metadata.int32(key("eos_token_id"));
  vocabulary.unknown_token_id = metadata.int32(key("unknown_token_id"));
  vocabulary.padding_token_id = metadata.int32(key("padding_token_id"));
  // As llama.cpp does for files from before these keys.
  const bool adds_bos = vocabulary.model == "llama" || vocabulary.pre == "llama-bpe" || vocabulary.pre == "llama3" ||
                        vocabulary.pre == "llama-v3";
  vocabulary.add_bos_token = metadata.boolean(key("add_bos_token")).value_or(adds_bos);
  vocabulary.add_eos_token = metadata.boolean(key("add_eos_token")).value_or(false);
  vocabulary.add_space_prefix = metadata.boolean(key("add_space_prefix")).value_or(true);
  if (metadata.problem()) {
    return tl::unexpected(*metadata.problem());
  }
  if (vocabulary.tokens.empty() || vocabulary.model == "none" || vocabulary.model == "no_vocab") {
    return std::nullopt;
  }
  return std::optional(std::move(vocabulary));
}

}  // namespace troupe
