#pragma once

/// The engine without CAF types: what a program links that does not want to know of actors. Programs with an
/// `actor_system` of their own spawn actors/engine_actor.hpp instead.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/engine_config.hpp"
#include "actors/request.hpp"
#include "actors/statistics.hpp"
#include "cache/error.hpp"
#include "cache/step_executor.hpp"

namespace troupe {

/// Makes the executor; called on the model runner's thread, which alone uses it afterwards.
using ExecutorFactory = std::function<Result<std::unique_ptr<StepExecutor>>()>;

/// Receives a request's outputs, in order, on a thread of the engine. Must not block.
using OutputCallback = std::function<void(const RequestOutput&)>;

/// A running engine: its own actor system with one engine actor. Thread-safe.
class Engine {
 public:
  /// Starts an engine; returns once its executor and cache stand.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(EngineConfig config, ModelDescription model,
                                                              ExecutorFactory make_executor);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  Engine(Engine&&) = delete;
  Engine& operator=(Engine&&) = delete;
  /// `shutdown(ShutdownMode::cancel)`, if that was not done before.
  ~Engine();

  /// Queues a request and returns its id, or why it was refused; a refused request gets no output.
  [[nodiscard]] Result<std::string> submit(Request request, OutputCallback on_output);

  /// Ends a request; its output with reason `cancelled` carries what it had. Unknown ids are an error.
  [[nodiscard]] Result<void> cancel(const std::string& id);

  /// Makes children of a live request that share its past: `<id>__child#<i>`. All or none.
  [[nodiscard]] Result<std::vector<std::string>> fork(const std::string& id, std::int32_t num_children,
                                                      ForkOverrides overrides, OutputCallback on_output);

  [[nodiscard]] EngineStatistics statistics() const;

  /// Checks the invariants of every block table and of the block manager; meant for tests and debugging.
  [[nodiscard]] Result<void> check_invariants() const;

  /// Ends the engine. `drain` finishes what was accepted, `cancel` ends it now. Requests left after `grace` are
  /// cancelled.
  void shutdown(ShutdownMode mode, std::chrono::milliseconds grace);

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
