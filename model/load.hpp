#pragma once

/// From a path to something that an engine can run. The only header of model/ that examples need.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "cache/error.hpp"
#include "cache/step_executor.hpp"
#include "model/model_files.hpp"

namespace troupe {

/// The type that a model computes in, and that its cache holds.
enum class ComputeType : std::uint8_t { f32, bf16 };

struct ExecutorOptions {
  ComputeType dtype = ComputeType::bf16;
  /// Intra-op threads of the runner; 0 means as many as cores.
  std::int32_t threads = 0;
};

/// What an engine must know of the model.
[[nodiscard]] ModelDescription describe(const ModelFiles& files, ComputeType dtype);

/// Packs the weights and makes the LibTorch executor; to be called on the thread that will use it. Weights are read and
/// packed layer by layer from the memory map, which may be closed afterwards.
[[nodiscard]] Result<std::unique_ptr<StepExecutor>> make_torch_executor(const ModelFiles& files,
                                                                        ExecutorOptions options);

}  // namespace troupe
