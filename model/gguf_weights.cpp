#include "model/gguf_weights.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/error_text.hpp"

namespace troupe {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr std::array kModelNames = std::to_array<Names>({
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
});
constexpr std::array kLayerNames = std::to_array<Names>({
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
});

/// How many heads the rows of a tensor are interleaved within; 0 for most tensors.
std::int64_t interleaved_heads(std::string_view name, const ModelConfig& config) {
  if (config.model_type != "llama") {
    return 0;
  }
  if (name.find(".attn_q.") != std::string_view::npos) {
    return config.num_attention_heads;
  }
  return name.find(".attn_k.") != std::string_view::npos ? config.num_key_value_heads : 0;
}

}  // namespace

std::string hugging_face_name(std::string_view gguf_name) {
  const std::size_t dot = gguf_name.rfind('.');
  const std::string_view suffix = dot == std::string_view::npos ? "" : gguf_name.substr(dot);
  std::string_view stem = gguf_name.substr(0, gguf_name.size() - suffix.size());
  std::string prefix;
  std::span<const Names> names = kModelNames;
  if (stem.starts_with("blk.")) {
    stem.remove_prefix(4);
    const std::size_t end = std::min(stem.find('.'), stem.size());
    prefix = "model.layers." + std::string(stem.substr(0, end)) + ".";
    stem.remove_prefix(std::min(end + 1, stem.size()));
    names = kLayerNames;
  }
  const auto known = std::ranges::find(names, stem, &Names::first);
  return known == names.end() ? std::string(gguf_name) : prefix + std::string(known->second) + std::string(suffix);
}

Result<std::shared_ptr<const FileWeights>> make_gguf_weights(const std::filesystem::path& path, MappedFile file,
                                                             const GgufFile& parsed, const ModelConfig& config) {
  FileWeights::Tensors tensors;
  for (const auto& [name, tensor] : parsed.tensors) {
    const std::int64_t heads = interleaved_heads(name, config);
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
    const bool is_bias = tensor.shape.size() == 1;
    if (heads > 0 && (rows % (2 * heads) != 0 || (is_bias && tensor.dtype != DType::f32))) {
      return fail(ErrorCode::malformed_file, path.string() + ": tensor " + in_quotes(name) + ": expected rows for " +
                                                 std::to_string(heads) + " heads, found " +
                                                 std::string(to_string(tensor.dtype)) + " " + to_text(tensor.shape));
    }
    const StoredTensor stored{
        .view = {.dtype = tensor.dtype, .shape = tensor.shape, .bytes = tensor.bytes, .interleaved_heads = heads},
        .type_name = std::string(to_string(tensor.dtype)),
        .file = 0};
    if (const std::string model_name = hugging_face_name(name); !tensors.emplace(model_name, stored).second) {
      return fail(ErrorCode::malformed_file,
                  path.string() + ": two tensors are " + in_quotes(model_name) + ", one of them " + in_quotes(name));
    }
  }
  std::vector<FileWeights::File> files;
  files.push_back({.path = path, .data = std::move(file)});
  return std::make_shared<const FileWeights>(path, std::move(files), std::move(tensors));
}

}  // namespace troupe
