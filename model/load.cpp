#include "model/load.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "model/cpu/kernels.hpp"
#include "model/torch_error.hpp"
#include "model/torch_executor.hpp"

namespace troupe {

namespace {

std::int64_t size_of(ComputeType dtype) { return dtype == ComputeType::f32 ? 4 : 2; }

Result<void> check_supported(const ModelFiles& files) {
  const ModelConfig& config = files.config;
  const std::int32_t heads_per_kv_head = config.num_attention_heads / std::max(config.num_key_value_heads, 1);
  if (heads_per_kv_head > cpu::kMaxTileRows) {
    return fail(ErrorCode::unsupported, files.path.string() + ": " + std::to_string(heads_per_kv_head) +
                                            " attention heads share a key/value head, at most " +
                                            std::to_string(cpu::kMaxTileRows) + " are supported");
  }
  return {};
}

}  // namespace

ModelDescription describe(const ModelFiles& files, ComputeType dtype) {
  const ModelConfig& config = files.config;
  return ModelDescription{
      .name = files.path.filename().string(),
      .vocab_size = config.vocab_size,
      .max_position_embeddings = config.max_position_embeddings,
      .layer_types = config.layer_types,
      .sliding_window = config.sliding_window,
      .eos_token_ids = config.eos_token_ids,
      .kv_bytes_per_token_and_layer = 2LL * config.num_key_value_heads * config.head_dim * size_of(dtype),
  };
}

Result<std::unique_ptr<StepExecutor>> make_torch_executor(const ModelFiles& files, ExecutorOptions options) {
  if (Result<void> checked = check_supported(files); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  const std::int32_t num_threads = options.threads > 0
                                       ? options.threads
                                       : std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
  try {
    const c10::InferenceMode guard;
    at::set_num_threads(num_threads);
    Result<std::unique_ptr<Decoder>> decoder = load_decoder(files, options.dtype, num_threads);
    if (!decoder) {
      return tl::unexpected(std::move(decoder.error()));
    }
    return std::make_unique<TorchExecutor>(std::move(*decoder), describe(files, options.dtype), num_threads);
  } catch (const std::exception& error) {
    return fail(ErrorCode::io_error,
                files.path.string() + ": the weights cannot be loaded: " + describe_exception(error));
  }
}

}  // namespace troupe
