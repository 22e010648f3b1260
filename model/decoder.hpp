#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/step_executor.hpp"
#include "model/load.hpp"

namespace troupe {

/// A step as a decoder sees it: everything known and checked.
struct DecoderStep {
  std::span<const StepRow> rows;
  /// Packed, every one in [0, vocab_size).
  std::span<const TokenId> token_ids;
  /// Of each token.
  std::span<const std::int32_t> positions;
  /// One for each layer group.
  std::span<const GroupInputs> groups;
  /// Indices of the tokens whose logits are wanted.
  std::span<const std::int32_t> sampled_tokens;
};

/// Logits in float32, (sampled tokens, vocab_size).
class Logits {
 public:
  Logits() = default;
  Logits(const Logits&) = delete;
  Logits& operator=(const Logits&) = delete;
  Logits(Logits&&) = delete;
  Logits& operator=(Logits&&) = delete;
  virtual ~Logits() = default;

  /// @param scratch Filled and returned if the logits are of another type.
  [[nodiscard]] virtual std::span<const float> row(std::size_t index, std::vector<float>& scratch) const = 0;
};

/// A decoder-only transformer of the Llama family with its weights and its cache: RMS norms, rotary embedding, grouped
/// query attention, gated MLP. Everything that differs between models is in `ModelConfig`. Methods throw what LibTorch
/// throws.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  Decoder(Decoder&&) = delete;
  Decoder& operator=(Decoder&&) = delete;
  virtual ~Decoder() = default;

  virtual void allocate_cache(const CacheShape& shape) = 0;
  virtual void copy_blocks(std::span<const BlockCopy> copies) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Logits>> forward(const DecoderStep& step) = 0;
};

/// Reads and packs the weights. Keeps `files.weights` for the embedding, which is read from the file row by row.
[[nodiscard]] Result<std::unique_ptr<Decoder>> load_decoder(const ModelFiles& files, ComputeType dtype,
                                                            std::int32_t num_threads);

}  // namespace troupe
