#include "model/expected_tensors.hpp"

#include <utility>

namespace troupe {
namespace {

/// Collects the tensors of a layer, or of the model outside of them.
class Collector {
 public:
  Collector(std::vector<ExpectedTensor>& tensors, std::string prefix)
      : tensors_(&tensors), prefix_(std::move(prefix)) {}

  void vector(const std::string& name, std::int64_t size) { tensors_->push_back({prefix_ + name, {size}}); }
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors_->push_back({prefix_ + name, {rows, columns}});
  }
  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool has_bias) {
    matrix(name + ".weight", outputs, inputs);
    if (has_bias) {
      vector(name + ".bias", outputs);
    }
  }

 private:
  std::vector<ExpectedTensor>* tensors_;
  std::string prefix_;
};

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t intermediate = config.intermediate_size;
  const std::int64_t queries = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t keys = std::int64_t{config.num_key_value_heads} * config.head_dim;
  std::vector<ExpectedTensor> tensors;
  Collector model(tensors, "");
  model.matrix("model.embed_tokens.weight", config.vocab_size, hidden);
  for (std::int32_t i = 0; i < config.num_hidden_layers; ++i) {
    Collector layer(tensors, "model.layers." + std::to_string(i) + ".");
    layer.vector("input_layernorm.weight", hidden);
    layer.linear("self_attn.q_proj", queries, hidden, config.attention_bias);
    layer.linear("self_attn.k_proj", keys, hidden, config.attention_bias);
    layer.linear("self_attn.v_proj", keys, hidden, config.attention_bias);
    layer.linear("self_attn.o_proj", hidden, queries, config.attention_output_bias);
    layer.vector("post_attention_layernorm.weight", hidden);
    layer.linear("mlp.gate_proj", intermediate, hidden, config.mlp_bias);
    layer.linear("mlp.up_proj", intermediate, hidden, config.mlp_bias);
    layer.linear("mlp.down_proj", hidden, intermediate, config.mlp_bias);
  }
  model.vector("model.norm.weight", hidden);
  if (!config.tie_word_embeddings) {
    model.matrix("lm_head.weight", config.vocab_size, hidden);
  }
  return tensors;
}

}  // namespace troupe
