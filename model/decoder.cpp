#include "model/decoder.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/ops/empty.h>

#include "model/cpu/kernels.hpp"
#include "model/cpu/paged_attention.hpp"
#include "model/kv_storage.hpp"
#include "model/packed_linear.hpp"
#include "model/rope.hpp"

namespace troupe {

namespace {

using cpu::BFloat16;

template <class T>
constexpr ComputeType kComputeType = std::is_same_v<T, float> ? ComputeType::f32 : ComputeType::bf16;

template <class T>
T* data_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

template <class T>
class CpuLogits final : public Logits {
 public:
  explicit CpuLogits(at::Tensor logits) : logits_(std::move(logits)) {}

  [[nodiscard]] std::span<const float> row(std::size_t index, std::vector<float>& scratch) const override {
    const auto vocab = static_cast<std::size_t>(logits_.size(1));
    const T* from = data_of<const T>(logits_) + index * vocab;
    if constexpr (std::is_same_v<T, float>) {
      return {from, vocab};
    } else {
      scratch.resize(vocab);
      for (std::size_t i = 0; i < vocab; ++i) {
        scratch[i] = cpu::to_float(from[i]);
      }
      return scratch;
    }
  }

 private:
  at::Tensor logits_;
};

struct DecoderLayer {
  at::Tensor input_norm;
  PackedLinear qkv;
  PackedLinear output;
  at::Tensor post_attention_norm;
  PackedLinear gate_up;
  PackedLinear down;
};

/// T is the type of weights, activations and cache.
template <class T>
class CpuDecoder final : public Decoder {
 public:
  CpuDecoder(const ModelFiles& files, RotaryEmbedding rope, std::int32_t num_threads)
      : config_(files.config), weights_(files.weights), rope_(std::move(rope)), num_threads_(num_threads) {}

  [[nodiscard]] Result<void> load();

  void allocate_cache(const CacheShape& shape) override {
    shape_ = shape;
    places_.assign(static_cast<std::size_t>(config_.num_hidden_layers), {});
    for (std::size_t group = 0; group < shape.groups.size(); ++group) {
      const std::vector<std::int32_t>& layers = shape.groups[group].layers;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i] >= 0) {
          places_[static_cast<std::size_t>(layers[i])] = {group, static_cast<std::int64_t>(i)};
        }
      }
    }
    cache_ = KvStorage(shape, config_.num_key_value_heads, config_.head_dim, to_scalar_type(kComputeType<T>));
  }

  void copy_blocks(std::span<const BlockCopy> copies) override { cache_.copy_blocks(copies); }

  [[nodiscard]] Result<std::unique_ptr<Logits>> forward(const DecoderStep& step) override;

 private:
  /// Where a layer's keys and values are.
  struct Place {
    std::size_t group = 0;
    std::int64_t layer_in_group = 0;
  };

  [[nodiscard]] Result<at::Tensor> load_vector(const std::string& name, std::int64_t size) const;
  [[nodiscard]] Result<DecoderLayer> load_layer(std::int32_t index) const;
  [[nodiscard]] Result<at::Tensor> embed(std::span<const TokenId> token_ids) const;
  [[nodiscard]] std::vector<cpu::AttentionPlan> plan_attention(const DecoderStep& step) const;
  [[nodiscard]] at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;
  void add(const at::Tensor& x, const at::Tensor& delta) const;
  [[nodiscard]] at::Tensor attend(const DecoderStep& step, const Place& place, const at::Tensor& qkv,
                                  cpu::AttentionPlan& plan) const;
  void rotate(const at::Tensor& qkv) const;
  void write_cache(std::span<const std::int32_t> slots, const Place& place, const at::Tensor& qkv) const;
  [[nodiscard]] at::Tensor activate(const at::Tensor& gate_up) const;

  [[nodiscard]] std::int64_t query_size() const { return std::int64_t{config_.num_attention_heads} * config_.head_dim; }
  [[nodiscard]] std::int64_t key_size() const { return std::int64_t{config_.num_key_value_heads} * config_.head_dim; }

  /// Calls f(token) for each token, on all threads if there is enough to do.
  /// @param size Elements that f visits.
  template <class Function>
  static void for_each_token(std::int64_t num_tokens, std::int64_t size, Function f) {
    // To start and join a team of threads takes as long as about so many elements.
    constexpr std::int64_t kWorthThreads = 1 << 14;
#pragma omp parallel for if (num_tokens * size > kWorthThreads)
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      f(token);
    }
  }

  ModelConfig config_;
  std::shared_ptr<const WeightSource> weights_;
  RotaryEmbedding rope_;
  std::int32_t num_threads_;
  const cpu::TypedKernels<T>& kernels_ = cpu::best_kernels().typed<T>();

  std::optional<PackedLinear> head_;
  std::vector<DecoderLayer> layers_;
  at::Tensor final_norm_;

  CacheShape shape_;
  std::vector<Place> places_;
  KvStorage cache_;
  /// Of the current step, (tokens, head_dim / 2) each.
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

template <class T>
Result<at::Tensor> CpuDecoder<T>::load_vector(const std::string& name, std::int64_t size) const {
  at::Tensor tensor = at::empty({size}, to_scalar_type(kComputeType<T>));
  return read_tensor(*weights_, name, tensor).map([&tensor] { return tensor; });
}

template <class T>
Result<DecoderLayer> CpuDecoder<T>::load_layer(std::int32_t index) const {
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  const bool bias = config_.attention_bias;
  const std::int64_t hidden = config_.hidden_size;
  const std::int64_t intermediate = config_.intermediate_size;
  auto input_norm = load_vector(prefix + "input_layernorm.weight", hidden);
  auto qkv = PackedLinear::load(*weights_,
                                {{attention + "q_proj", query_size(), bias},
                                 {attention + "k_proj", key_size(), bias},
                                 {attention + "v_proj", key_size(), bias}},
                                hidden, kComputeType<T>);
  auto output = PackedLinear::load(*weights_, {{attention + "o_proj", hidden, config_.attention_output_bias}},
                                   query_size(), kComputeType<T>);
  auto post_attention_norm = load_vector(prefix + "post_attention_layernorm.weight", hidden);
  auto gate_up = PackedLinear::load(
      *weights_,
      {{mlp + "gate_proj", intermediate, config_.mlp_bias}, {mlp + "up_proj", intermediate, config_.mlp_bias}}, hidden,
      kComputeType<T>);
  auto down =
      PackedLinear::load(*weights_, {{mlp + "down_proj", hidden, config_.mlp_bias}}, intermediate, kComputeType<T>);
  for (const Result<at::Tensor>* vector : {&input_norm, &post_attention_norm}) {
    if (!*vector) {
      return tl::unexpected(vector->error());
    }
  }
  for (const Result<PackedLinear>* linear : {&qkv, &output, &gate_up, &down}) {
    if (!*linear) {
      return tl::unexpected(linear->error());
    }
  }
  return DecoderLayer{*input_norm, *qkv, *output, *post_attention_norm, *gate_up, *down};
}

template <class T>
Result<void> CpuDecoder<T>::load() {
  // The head first: packing needs its weight twice for a moment, which is least while nothing else is there.
  const std::string head = config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head";
  auto packed_head =
      PackedLinear::load(*weights_, {{head, config_.vocab_size, false}}, config_.hidden_size, kComputeType<T>);
  if (!packed_head) {
    return tl::unexpected(std::move(packed_head.error()));
  }
  head_ = std::move(*packed_head);
  for (std::int32_t i = 0; i < config_.num_hidden_layers; ++i) {
    auto layer = load_layer(i);
    if (!layer) {
      return tl::unexpected(std::move(layer.error()));
    }
    layers_.push_back(std::move(*layer));
  }
  auto final_norm = load_vector("model.norm.weight", config_.hidden_size);
  if (!final_norm) {
    return tl::unexpected(std::move(final_norm.error()));
  }
  final_norm_ = *final_norm;
  return {};
}

template <class T>
Result<std::unique_ptr<Logits>> CpuDecoder<T>::forward(const DecoderStep& step) {
  Result<at::Tensor> embedded = embed(step.token_ids);
  if (!embedded) {
    return tl::unexpected(std::move(embedded.error()));
  }
  const at::Tensor x = *embedded;
  const auto half = static_cast<std::size_t>(config_.head_dim / 2);
  cosines_.resize(step.positions.size() * half);
  sines_.resize(step.positions.size() * half);
  rope_.fill(step.positions, cosines_, sines_);
  std::vector<cpu::AttentionPlan> plans = plan_attention(step);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const DecoderLayer& layer = layers_[i];
    const at::Tensor qkv = layer.qkv(norm(x, layer.input_norm));
    add(x, layer.output(attend(step, places_[i], qkv, plans[places_[i].group])));
    add(x, layer.down(activate(layer.gate_up(norm(x, layer.post_attention_norm)))));
  }

  const auto num_sampled = static_cast<std::int64_t>(step.sampled_tokens.size());
  at::Tensor last = at::empty({num_sampled, config_.hidden_size}, x.scalar_type());
  for (std::int64_t i = 0; i < num_sampled; ++i) {
    kernels_.rms_norm(data_of<T>(x) + step.sampled_tokens[static_cast<std::size_t>(i)] * x.size(1),
                      data_of<T>(final_norm_), static_cast<float>(config_.rms_norm_eps), x.size(1),
                      data_of<T>(last) + i * x.size(1));
  }
  return std::make_unique<CpuLogits<T>>(num_sampled > 0 ? (*head_)(last)
                                                        : at::empty({0, config_.vocab_size}, x.scalar_type()));
}

template <class T>
Result<at::Tensor> CpuDecoder<T>::embed(std::span<const TokenId> token_ids) const {
  const auto num_tokens = static_cast<std::int64_t>(token_ids.size());
  at::Tensor rows = at::empty({num_tokens, config_.hidden_size}, at::ScalarType::Float);
  const std::span<float> out(rows.data_ptr<float>(), static_cast<std::size_t>(rows.numel()));
  if (Result<void> read = weights_->read_rows_f32("model.embed_tokens.weight", token_ids, out); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  return rows.to(to_scalar_type(kComputeType<T>));
}

template <class T>
std::vector<cpu::AttentionPlan> CpuDecoder<T>::plan_attention(const DecoderStep& step) const {
  std::vector<cpu::AttentionPlan> plans;
  for (std::size_t group = 0; group < step.groups.size(); ++group) {
    const GroupInputs& inputs = step.groups[group];
    const cpu::AttentionShape shape = {
        .num_heads = config_.num_attention_heads,
        .num_kv_heads = config_.num_key_value_heads,
        .head_dim = config_.head_dim,
        .block_size = shape_.block_size,
        .sliding_window = shape_.groups[group].type == AttentionType::sliding ? shape_.groups[group].sliding_window : 0,
        .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim))),
    };
    std::vector<cpu::AttentionRow> rows;
    rows.reserve(step.rows.size());
    for (std::size_t i = 0; i < step.rows.size(); ++i) {
      const auto begin = static_cast<std::size_t>(inputs.block_table_offsets[i]);
      const auto end = static_cast<std::size_t>(inputs.block_table_offsets[i + 1]);
      rows.push_back(cpu::AttentionRow{.query_start = step.rows[i].query_start,
                                       .query_length = step.rows[i].query_length,
                                       .past_length = step.rows[i].past_length,
                                       .block_table = std::span(inputs.block_table).subspan(begin, end - begin)});
    }
    plans.emplace_back(shape, std::move(rows), num_threads_);
  }
  return plans;
}

template <class T>
at::Tensor CpuDecoder<T>::norm(const at::Tensor& x, const at::Tensor& weight) const {
  at::Tensor out = at::empty(x.sizes(), x.scalar_type());
  const std::int64_t size = x.size(1);
  for_each_token(x.size(0), size, [&](std::int64_t token) {
    kernels_.rms_norm(data_of<T>(x) + token * size, data_of<T>(weight), static_cast<float>(config_.rms_norm_eps), size,
                      data_of<T>(out) + token * size);
  });
  return out;
}

template <class T>
void CpuDecoder<T>::add(const at::Tensor& x, const at::Tensor& delta) const {
  const std::int64_t size = x.size(1);
  for_each_token(x.size(0), size, [&](std::int64_t token) {
    kernels_.add(data_of<T>(x) + token * size, data_of<T>(delta) + token * size, size);
  });
}

template <class T>
at::Tensor CpuDecoder<T>::attend(const DecoderStep& step, const Place& place, const at::Tensor& qkv,
                                 cpu::AttentionPlan& plan) const {
  rotate(qkv);
  const bool sliding = shape_.groups[place.group].type == AttentionType::sliding;
  const std::vector<std::int32_t>& slots = step.groups[place.group].slot_mapping;
  if (!sliding) {
    write_cache(slots, place, qkv);
  }
  at::Tensor out = at::empty({qkv.size(0), query_size()}, qkv.scalar_type());
  plan.run(cpu::AttentionData<T>{
      .queries = data_of<T>(qkv),
      .query_stride = qkv.size(1),
      .new_keys = data_of<T>(qkv) + query_size(),
      .new_values = data_of<T>(qkv) + query_size() + key_size(),
      .key_stride = qkv.size(1),
      .keys = cache_.keys<T>(place.layer_in_group),
      .values = cache_.values<T>(place.layer_in_group),
      .out = data_of<T>(out),
  });
  if (sliding) {
    write_cache(slots, place, qkv);
  }
  return out;
}

template <class T>
void CpuDecoder<T>::rotate(const at::Tensor& qkv) const {
  const std::int64_t half = config_.head_dim / 2;
  // Query heads and key heads lie side by side.
  const std::int64_t num_heads = std::int64_t{config_.num_attention_heads} + config_.num_key_value_heads;
  for_each_token(qkv.size(0), qkv.size(1), [&](std::int64_t token) {
    T* const heads = data_of<T>(qkv) + token * qkv.size(1);
    for (std::int64_t head = 0; head < num_heads; ++head) {
      T* const values = heads + head * config_.head_dim;
      kernels_.rotate(values, cosines_.data() + token * half, sines_.data() + token * half, half, values);
    }
  });
}

template <class T>
void CpuDecoder<T>::write_cache(std::span<const std::int32_t> slots, const Place& place, const at::Tensor& qkv) const {
  const auto bytes = static_cast<std::size_t>(key_size()) * sizeof(T);
  T* const keys = cache_.keys<T>(place.layer_in_group);
  T* const values = cache_.values<T>(place.layer_in_group);
  for_each_token(qkv.size(0), qkv.size(1), [&](std::int64_t token) {
    const std::int64_t slot = slots[static_cast<std::size_t>(token)];
    if (slot < 0) {
      return;
    }
    const T* const from = data_of<T>(qkv) + token * qkv.size(1) + query_size();
    std::memcpy(keys + slot * key_size(), from, bytes);
    std::memcpy(values + slot * key_size(), from + key_size(), bytes);
  });
}

template <class T>
at::Tensor CpuDecoder<T>::activate(const at::Tensor& gate_up) const {
  const std::int64_t size = config_.intermediate_size;
  at::Tensor out = at::empty({gate_up.size(0), size}, gate_up.scalar_type());
  for_each_token(gate_up.size(0), 2 * size, [&](std::int64_t token) {
    const T* const gate = data_of<T>(gate_up) + token * 2 * size;
    kernels_.activate(config_.activation, gate, gate + size, size, data_of<T>(out) + token * size);
  });
  return out;
}

template <class T>
Result<std::unique_ptr<Decoder>> make_decoder(const ModelFiles& files, RotaryEmbedding rope, std::int32_t num_threads) {
  auto decoder = std::make_unique<CpuDecoder<T>>(files, std::move(rope), num_threads);
  if (Result<void> loaded = decoder->load(); !loaded) {
    return tl::unexpected(std::move(loaded.error()));
  }
  return decoder;
}

}  // namespace

Result<std::unique_ptr<Decoder>> load_decoder(const ModelFiles& files, ComputeType dtype, std::int32_t num_threads) {
  Result<RotaryEmbedding> rope = RotaryEmbedding::make(files.config.rope, files.config.head_dim);
  if (!rope) {
    return fail(rope.error().code, files.path.string() + ": " + rope.error().message);
  }
  return dtype == ComputeType::f32 ? make_decoder<float>(files, std::move(*rope), num_threads)
                                   : make_decoder<BFloat16>(files, std::move(*rope), num_threads);
}

}  // namespace troupe
