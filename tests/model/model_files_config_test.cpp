#include <string>
#include <string_view>
#include <vector>

#include "model/config_json.hpp"
#include "model/expected_tensors.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using test::tiny_config;

std::string error_of(std::string_view text) {
  const Result<ModelConfig> config = parse_config(text);
  return config ? "no error" : config.error().message;
}

ModelConfig parsed(std::string_view text) {
  const Result<ModelConfig> config = parse_config(text);
  INFO((config ? "" : config.error().message));
  REQUIRE(config);
  return *config;
}

ModelConfig tiny(std::string_view more) { return parsed(tiny_config(more)); }

/// The tiny configuration with one of its numbers replaced.
std::string with(std::string_view key, std::string_view value) {
  std::string text = tiny_config();
  const std::string quoted_key = "\"" + std::string(key) + "\": ";
  const std::size_t begin = text.find(quoted_key) + quoted_key.size();
  return text.replace(begin, text.find_first_of(",}", begin) - begin, value);
}

TEST_CASE("a llama configuration with nothing in it has the defaults of transformers") {
  const ModelConfig config = parsed(R"({"model_type": "llama"})");
  CHECK(config.vocab_size == 32000);
  CHECK(config.hidden_size == 4096);
  CHECK(config.intermediate_size == 11008);
  CHECK(config.num_hidden_layers == 32);
  CHECK(config.num_attention_heads == 32);
  CHECK(config.num_key_value_heads == 32);
  CHECK(config.head_dim == 128);
  CHECK(config.max_position_embeddings == 2048);
  CHECK(config.rms_norm_eps == 1e-6);
  CHECK(config.rope.theta == 10000.0);
  CHECK(config.rope.scaling == RopeScalingType::none);
  CHECK(config.activation == Activation::silu);
  CHECK_FALSE(config.attention_bias);
  CHECK_FALSE(config.attention_output_bias);
  CHECK_FALSE(config.mlp_bias);
  CHECK_FALSE(config.tie_word_embeddings);
  CHECK(config.layer_types == std::vector<AttentionType>(32, AttentionType::full));
  CHECK(config.sliding_window == 0);
  CHECK(config.bos_token_id == 1);
  CHECK(config.eos_token_ids == std::vector<TokenId>{2});
}

TEST_CASE("mistral slides in every layer unless its window is null") {
  const ModelConfig config = parsed(R"({"model_type": "mistral"})");
  CHECK(config.num_key_value_heads == 8);
  CHECK(config.intermediate_size == 14336);
  CHECK(config.max_position_embeddings == 131072);
  CHECK(config.sliding_window == 4096);
  CHECK(config.layer_types == std::vector<AttentionType>(32, AttentionType::sliding));

  const ModelConfig full = parsed(R"({"model_type": "mistral", "sliding_window": null, "num_key_value_heads": null})");
  CHECK(full.sliding_window == 0);
  CHECK(full.num_key_value_heads == 32);
  CHECK(full.layer_types == std::vector<AttentionType>(32, AttentionType::full));
}

TEST_CASE("a window that no sequence outgrows is full attention") {
  const ModelConfig config =
      parsed(R"({"model_type": "mistral", "sliding_window": 4096, "max_position_embeddings": 4096})");
  CHECK(config.sliding_window == 0);
  CHECK(config.layer_types == std::vector<AttentionType>(32, AttentionType::full));
}

TEST_CASE("qwen2 has biases on queries and keys and values only") {
  const ModelConfig config = parsed(R"({"model_type": "qwen2"})");
  CHECK(config.vocab_size == 151936);
  CHECK(config.intermediate_size == 22016);
  CHECK(config.max_position_embeddings == 32768);
  CHECK(config.attention_bias);
  CHECK_FALSE(config.attention_output_bias);
  CHECK_FALSE(config.mlp_bias);
  CHECK_FALSE(config.bos_token_id);
  CHECK(config.eos_token_ids.empty());
  CHECK(config.sliding_window == 0);
}

TEST_CASE("qwen2 slides only where it is told to") {
  const std::string base = R"({"model_type": "qwen2", "num_hidden_layers": 3, "sliding_window": 64)";
  using Types = std::vector<AttentionType>;
  constexpr auto kFull = AttentionType::full;
  constexpr auto kSliding = AttentionType::sliding;
  CHECK(parsed(base + "}").sliding_window == 0);
  CHECK(parsed(base + R"(, "max_window_layers": 0})").layer_types == Types{kFull, kFull, kFull});
  const ModelConfig upper = parsed(base + R"(, "use_sliding_window": true, "max_window_layers": 2})");
  CHECK(upper.layer_types == Types{kFull, kFull, kSliding});
  CHECK(upper.sliding_window == 64);
  const ModelConfig none = parsed(base + R"(, "use_sliding_window": true})");
  CHECK(none.layer_types == Types{kFull, kFull, kFull});
  CHECK(none.sliding_window == 0);
  const std::string types = R"(, "layer_types": ["sliding_attention", "full_attention", "full_attention"]})";
  CHECK(parsed(base + R"(, "use_sliding_window": true)" + types).layer_types == Types{kSliding, kFull, kFull});
  CHECK_THAT(error_of(base + types), Catch::Contains("/layer_types: these types do not go with"));
  CHECK_THAT(error_of(base + R"(, "layer_types": ["full_attention"]})"),
             Catch::Contains("/layer_types: expected one for each of 3 layers, found 1"));
  CHECK_THAT(error_of(base + R"(, "layer_types": ["full_attention", "linear_attention", "full_attention"]})"),
             Catch::Contains("/layer_types/1: expected \"full_attention\" or \"sliding_attention\", found \"linear"));
}

TEST_CASE("layer types that llama and mistral do not have are refused") {
  CHECK(tiny(R"(, "layer_types": ["full_attention"])").layer_types.size() == 1);
  CHECK_THAT(error_of(tiny_config(R"(, "layer_types": ["sliding_attention"])")),
             Catch::Contains("/layer_types: these types do not go with the model type"));
}

TEST_CASE("fields of a configuration are read") {
  const ModelConfig config = tiny(
      R"(, "head_dim": 6, "rms_norm_eps": 1e-5, "hidden_act": "gelu_pytorch_tanh", "attention_bias": true,
           "mlp_bias": true, "tie_word_embeddings": true, "bos_token_id": 3, "eos_token_id": [4, 5, 4],
           "torch_dtype": "bfloat16", "dtype": 5, "something": {"else": []})");
  CHECK(config.head_dim == 6);
  CHECK(config.rms_norm_eps == 1e-5);
  CHECK(config.activation == Activation::gelu_tanh);
  CHECK(config.attention_bias);
  CHECK(config.attention_output_bias);
  CHECK(config.mlp_bias);
  CHECK(config.tie_word_embeddings);
  CHECK(config.bos_token_id == 3);
  CHECK(config.eos_token_ids == std::vector<TokenId>{4, 5});
  const ModelConfig none = tiny(R"(, "bos_token_id": null, "eos_token_id": null)");
  CHECK_FALSE(none.bos_token_id);
  CHECK(none.eos_token_ids.empty());
}

TEST_CASE("a field that cannot be is refused by name") {
  struct Case {
    std::string text;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"", "not valid JSON"},
      {"[]", "/: expected an object"},
      {"5", "/: expected an object"},
      {"{}", "/model_type: expected a string, found nothing"},
      {R"({"model_type": "mamba"})", R"(/model_type: expected one of "llama", "mistral", "qwen2", found "mamba")"},
      {R"({"model_type": "llama", "model_type": "llama"})", "the key \"model_type\" occurs twice"},
      {with("vocab_size", "0"), "/vocab_size: expected an integer from 1 to 2147483647, found 0"},
      {with("vocab_size", "-5"), "/vocab_size: expected an integer from 1 to 2147483647, found -5"},
      {with("vocab_size", "2147483648"), "/vocab_size: expected an integer from 1 to 2147483647, found 2147483648"},
      {with("vocab_size", "18446744073709551615"), "/vocab_size: expected an integer, found 18446744073709551615"},
      {with("vocab_size", "2147483647"), "vocab_size: expected a number from 1 to 4194304, found 2147483647"},
      {with("vocab_size", "16.5"), "/vocab_size: expected an integer, found 16.5"},
      {with("vocab_size", "\"16\""), "/vocab_size: expected an integer, found string"},
      {with("vocab_size", "NaN"), "not valid JSON"},
      {with("vocab_size", "1e999"), "not valid JSON"},
      {with("hidden_size", "0"), "/hidden_size: expected an integer from 1"},
      {with("hidden_size", "9"),
       "/head_dim: not given, and hidden_size (9) is not a multiple of num_attention_heads (2)"},
      {with("hidden_size", "6"), "head_dim: expected an even number, found 3"},
      {with("num_hidden_layers", "2147483647"), "/num_hidden_layers: expected an integer from 1 to 4096"},
      {with("num_attention_heads", "0"), "/num_attention_heads: expected an integer from 1"},
      {with("num_key_value_heads", "3"), "num_key_value_heads: expected a number from 1 to 2, found 3"},
      {with("max_position_embeddings", "0"), "/max_position_embeddings: expected an integer from 1"},
      {tiny_config(R"(, "num_attention_heads_": 1, "rms_norm_eps": -1)"),
       "/rms_norm_eps: expected a number from 0 to 1, found -1"},
      {tiny_config(R"(, "rms_norm_eps": Infinity)"), "not valid JSON"},
      {tiny_config(R"(, "hidden_act": "relu2")"), "/hidden_act: the activation \"relu2\" is not supported"},
      {tiny_config(R"(, "attention_bias": 1)"), "/attention_bias: expected true or false, found 1"},
      {tiny_config(R"(, "tie_word_embeddings": "true")"), "/tie_word_embeddings: expected true or false"},
      {tiny_config(R"(, "quantization_config": {"bits": 4})"), "/quantization_config: not supported"},
      {tiny_config(R"(, "eos_token_id": 16)"), "/eos_token_id: expected an integer from 0 to 15, found 16"},
      {tiny_config(R"(, "eos_token_id": [1, -1])"), "/eos_token_id/1: expected an integer from 0 to 15, found -1"},
      {tiny_config(R"(, "eos_token_id": [[1]])"), "/eos_token_id/0: expected an integer, found array"},
      {tiny_config(R"(, "bos_token_id": 16)"), "/bos_token_id: expected an integer from 0 to 15, found 16"},
      {tiny_config(R"(, "a": )" + std::string(100, '[') + std::string(100, ']')), "at most 64 levels of nesting"},
  };
  for (const Case& text : cases) {
    CAPTURE(text.text);
    CHECK_THAT(error_of(text.text), Catch::Contains(text.expected));
  }
  CHECK(parse_config(R"({"model_type": "mamba"})").error().code == ErrorCode::unsupported);
  CHECK(parse_config("{}").error().code == ErrorCode::malformed_file);
}

TEST_CASE("several heads that do not divide are refused") {
  const std::string text = R"({"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 12})";
  CHECK_THAT(error_of(text),
             Catch::Contains("num_attention_heads: expected a multiple of num_key_value_heads (12), found 32"));
}

TEST_CASE("the base of the rotary embedding is read in both spellings") {
  CHECK(tiny(R"(, "rope_theta": 500000)").rope.theta == 500000.0);
  CHECK(tiny(R"(, "rope_theta": 500000, "rope_scaling": null)").rope.theta == 500000.0);
  CHECK(tiny(R"(, "rope_theta": 5, "rope_scaling": {})").rope.theta == 5.0);
  CHECK(tiny(R"(, "rope_parameters": {"rope_theta": 7.5, "rope_type": "default"})").rope.theta == 7.5);
  CHECK(tiny(R"(, "rope_theta": 5, "rope_parameters": {"rope_type": "default"})").rope.theta == 5.0);
  CHECK(tiny(R"(, "rope_theta": 5, "rope_parameters": {"rope_theta": 6})").rope.theta == 6.0);
  CHECK(tiny(R"(, "rope_theta": null)").rope.theta == 10000.0);
}

TEST_CASE("a linear scaling is read in each of its spellings") {
  for (const std::string_view scaling :
       {R"("rope_scaling": {"type": "linear", "factor": 4})",
        R"("rope_scaling": {"rope_type": "linear", "factor": 4.0})",
        R"("rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 4})",
        R"("rope_scaling": {"type": "dynamic", "rope_type": "linear", "factor": 4})",
        R"("rope_parameters": {"rope_type": "linear", "factor": 4})",
        R"("rope_parameters": {"rope_type": "yarn"}, "rope_scaling": {"type": "linear", "factor": 4})"}) {
    CAPTURE(scaling);
    const RopeConfig rope = tiny(", " + std::string(scaling)).rope;
    CHECK(rope.scaling == RopeScalingType::linear);
    CHECK(rope.factor == 4.0);
  }
}

TEST_CASE("a llama3 scaling is read") {
  const std::string scaling = R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
                                  "high_freq_factor": 4.5)";
  const RopeConfig rope = tiny(scaling + R"(, "original_max_position_embeddings": 32})").rope;
  CHECK(rope.scaling == RopeScalingType::llama3);
  CHECK(rope.factor == 8.0);
  CHECK(rope.low_freq_factor == 1.0);
  CHECK(rope.high_freq_factor == 4.5);
  CHECK(rope.original_max_position_embeddings == 32);
  CHECK(tiny(scaling + "}").rope.original_max_position_embeddings == 64);
  CHECK(tiny(scaling + R"(}, "original_max_position_embeddings": 16)").rope.original_max_position_embeddings == 16);
}

TEST_CASE("a yarn scaling is read") {
  const RopeConfig rope = tiny(R"(, "rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 16, "beta_slow": null,
      "original_max_position_embeddings": 32, "attention_factor": 0.75, "mscale": 0.5, "truncate": false})")
                              .rope;
  CHECK(rope.scaling == RopeScalingType::yarn);
  CHECK(rope.factor == 2.0);
  CHECK(rope.beta_fast == 16.0);
  CHECK(rope.beta_slow == 1.0);
  CHECK(rope.original_max_position_embeddings == 32);
  CHECK(rope.attention_factor == 0.75);
  CHECK(rope.mscale == 0.5);
  CHECK_FALSE(rope.mscale_all_dim);
  CHECK_FALSE(rope.truncate);
  CHECK(tiny(R"(, "rope_scaling": {"type": "yarn", "factor": null, "original_max_position_embeddings": 16})")
            .rope.factor == 4.0);
}

TEST_CASE("a scaling that is unknown or incomplete is refused by key") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"rope_type": "foo"})",
       R"(/rope_scaling/rope_type: expected "default", "linear", "dynamic", "yarn" or "llama3", found "foo")"},
      {R"({"type": "mrope"})", "/rope_scaling/type: expected"},
      {R"({"rope_type": "longrope", "factor": 4})", "/rope_scaling/rope_type: expected"},
      {R"({"rope_type": 5})", "/rope_scaling/rope_type: expected a string, found 5"},
      {R"({"rope_type": "linear"})", "/rope_scaling/factor: expected a number, found nothing"},
      {R"({"rope_type": "linear", "factor": 0})", "/rope_scaling/factor: expected a number above 0, found 0"},
      {R"({"rope_type": "linear", "factor": "4"})", "/rope_scaling/factor: expected a number, found string"},
      {R"({"rope_type": "llama3", "low_freq_factor": 1, "high_freq_factor": 4})", "/rope_scaling/factor: expected"},
      {R"({"rope_type": "llama3", "factor": 8, "high_freq_factor": 4})", "/rope_scaling/low_freq_factor: expected"},
      {R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1})", "/rope_scaling/high_freq_factor: expected"},
      {R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})",
       "/rope_scaling/high_freq_factor: expected a number above 4, found 4"},
      {R"({"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 0})",
       "/rope_scaling/original_max_position_embeddings: expected an integer from 1"},
      {R"({"rope_type": "yarn"})", "/rope_scaling/factor: expected a number, found nothing"},
      {R"({"rope_theta": 1})", "/rope_scaling/rope_theta: expected a number above 1, found 1"},
      {R"({"partial_rotary_factor": 0.5})", "/rope_scaling/partial_rotary_factor: only heads that rotate as a whole"},
      {R"({"full_attention": {"rope_theta": 5}})",
       "/rope_scaling/full_attention: rotary parameters for each layer type"},
      {R"([1])", "/rope_scaling: expected an object"},
      {R"("linear")", "/rope_scaling: expected an object"},
  };
  for (const auto& [scaling, expected] : cases) {
    CAPTURE(scaling);
    CHECK_THAT(error_of(tiny_config(", \"rope_scaling\": " + scaling)), Catch::Contains(expected));
  }
  CHECK_THAT(error_of(tiny_config(R"(, "partial_rotary_factor": 0.5)")), Catch::Contains("/partial_rotary_factor"));
  CHECK_THAT(error_of(tiny_config(R"(, "rope_theta": -5)")), Catch::Contains("/rope_theta: expected a number above 1"));
}

TEST_CASE("the generation defaults of a model are read") {
  const Result<GenerationConfig> config = parse_generation_config(
      R"({"eos_token_id": [2, 410], "max_new_tokens": 5, "do_sample": true, "temperature": 0.5, "top_k": 20,
          "top_p": 0.75, "min_p": 0.125, "pad_token_id": -1, "transformers_version": "5.23.0"})",
      512);
  REQUIRE(config);
  CHECK(config->eos_token_ids == std::vector<TokenId>{2, 410});
  CHECK(config->defaults.max_new_tokens == 5);
  CHECK(config->defaults.do_sample == true);
  CHECK(config->defaults.temperature == 0.5F);
  CHECK(config->defaults.top_k == 20);
  CHECK(config->defaults.top_p == 0.75F);
  CHECK(config->defaults.min_p == 0.125F);

  const Result<GenerationConfig> nothing = parse_generation_config(R"({"temperature": null})", 512);
  REQUIRE(nothing);
  CHECK(nothing->eos_token_ids.empty());
  CHECK_FALSE(nothing->defaults.temperature);
}

TEST_CASE("a generation default that cannot be is refused by name") {
  for (const auto& [field, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"("eos_token_id": 512)", "/eos_token_id: expected an integer from 0 to 511, found 512"},
           {R"("temperature": -1)", "/temperature: expected a number from 0"},
           {R"("temperature": "hot")", "/temperature: expected a number, found string"},
           {R"("temperature": 1e300)", "/temperature: expected a number from 0"},
           {R"("top_k": 1.5)", "/top_k: expected an integer, found 1.5"},
           {R"("top_p": 2)", "/top_p: expected a number from 0 to 1, found 2"},
           {R"("min_p": -0.5)", "/min_p: expected a number from 0 to 1"},
           {R"("do_sample": 1)", "/do_sample: expected true or false, found 1"},
           {R"("max_new_tokens": 0)", "/max_new_tokens: expected an integer from 1"}}) {
    CAPTURE(field);
    const Result<GenerationConfig> config = parse_generation_config("{" + field + "}", 512);
    REQUIRE_FALSE(config);
    CHECK_THAT(config.error().message, Catch::Contains(expected));
  }
}

TEST_CASE("a decoder needs a tensor for each of its parts") {
  ModelConfig config = tiny(R"(, "head_dim": 6, "attention_bias": true, "mlp_bias": true)");
  std::vector<std::string> names;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    std::string text = tensor.name;
    for (const std::int64_t size : tensor.shape) {
      text += " " + std::to_string(size);
    }
    names.push_back(text);
  }
  CHECK(names == std::vector<std::string>{
                     "model.embed_tokens.weight 16 8", "model.layers.0.input_layernorm.weight 8",
                     "model.layers.0.self_attn.q_proj.weight 12 8", "model.layers.0.self_attn.q_proj.bias 12",
                     "model.layers.0.self_attn.k_proj.weight 6 8", "model.layers.0.self_attn.k_proj.bias 6",
                     "model.layers.0.self_attn.v_proj.weight 6 8", "model.layers.0.self_attn.v_proj.bias 6",
                     "model.layers.0.self_attn.o_proj.weight 8 12", "model.layers.0.self_attn.o_proj.bias 8",
                     "model.layers.0.post_attention_layernorm.weight 8", "model.layers.0.mlp.gate_proj.weight 12 8",
                     "model.layers.0.mlp.gate_proj.bias 12", "model.layers.0.mlp.up_proj.weight 12 8",
                     "model.layers.0.mlp.up_proj.bias 12", "model.layers.0.mlp.down_proj.weight 8 12",
                     "model.layers.0.mlp.down_proj.bias 8", "model.norm.weight 8", "lm_head.weight 16 8"});
  config.tie_word_embeddings = true;
  CHECK(expected_tensors(config).back().name == "model.norm.weight");
}

}  // namespace
}  // namespace troupe
