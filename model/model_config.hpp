#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// How rotary frequencies are scaled beyond the trained length. Names and formulas as in transformers'
/// modeling_rope_utils.
enum class RopeScalingType : std::uint8_t { none, linear, dynamic, yarn, llama3 };

struct RopeConfig {
  double theta = 10000.0;
  RopeScalingType scaling = RopeScalingType::none;
  double factor = 1.0;
  /// llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int32_t original_max_position_embeddings = 0;
  /// yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
  bool truncate = true;
};

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu };

/// A decoder described by data; one struct for every family that troupe serves.
struct ModelConfig {
  /// transformers' `model_type`, e.g. "llama".
  std::string model_type;
  std::int32_t vocab_size = 0;
  std::int32_t hidden_size = 0;
  std::int32_t intermediate_size = 0;
  std::int32_t num_hidden_layers = 0;
  std::int32_t num_attention_heads = 0;
  std::int32_t num_key_value_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  Activation activation = Activation::silu;
  /// Biases of the query, key and value projections.
  bool attention_bias = false;
  /// Bias of the attention's output projection.
  bool attention_output_bias = false;
  /// Biases of all three projections.
  bool mlp_bias = false;
  bool tie_word_embeddings = false;
  /// One for each layer.
  std::vector<AttentionType> layer_types;
  /// Tokens that a sliding layer sees, the query's own included; 0 if no layer slides.
  std::int32_t sliding_window = 0;
  std::optional<TokenId> bos_token_id;
  /// Tokens that end a sequence; from generation_config.json if that names any, as in transformers.
  std::vector<TokenId> eos_token_ids;
};

/// Defaults of generation that a model directory brings along (`generation_config.json`).
struct GenerationDefaults {
  std::optional<std::int32_t> max_new_tokens;
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
};

}  // namespace troupe
