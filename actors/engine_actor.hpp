#pragma once

/// The ENGINE: what a program with an `actor_system` of its own spawns. See docs/actors.md and examples/embed.cpp.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/engine.hpp"
#include "actors/engine_ledger.hpp"
#include "actors/messages.hpp"
#include "actors/trace.hpp"
#include "cache/block_manager.hpp"

namespace troupe {

/// Where the MODEL RUNNER runs.
enum class RunnerThread : std::uint8_t {
  /// On a thread of its own, because a step takes milliseconds.
  own,
  /// In the pool, for tests under CAF's deterministic scheduler.
  pooled,
};

/// What the ENGINE is made of.
struct EngineArguments {
  EngineConfig config;
  ModelDescription model;
  ExecutorFactory make_executor;
  RunnerThread runner_thread = RunnerThread::own;
};

/// State of the ENGINE: front door, supervisor of the other actors, and the way of outputs to their clients, so that it
/// knows at any time who must hear of a failure.
class EngineState {
 public:
  using Self = EngineActor::stateful_pointer<EngineState>;

  static inline const char* name = "engine";

  explicit EngineState(Self self) : self_(self) {}

  EngineActor::behavior_type make_behavior(EngineArguments arguments);

 private:
  enum class Phase : std::uint8_t {
    /// The executor is being made; requests are held back.
    starting,
    running,
    /// Accepted requests are finished, new ones refused.
    draining,
    /// The scheduler was told to cancel everything.
    cancelling,
    /// The other actors are ending, one kind after the other.
    stopping,
    /// No other actor is left. The engine stays only after a failure, to refuse requests.
    stopped,
  };

  struct HeldRequest {
    SubmitRequest message;
    OpenPromises::Key key = 0;
  };

  // -- start: executor, cache, then the other actors ---------------------------------------------------------------
  void start();
  void allocate_cache();
  void serve();
  std::shared_ptr<TraceLane> add_lane(const std::string& lane_name);

  // -- requests ----------------------------------------------------------------------------------------------------
  caf::result<RequestAccepted> submit(SubmitRequest& message);
  void forward(SubmitRequest message, OpenPromises::Key key);
  caf::result<Done> cancel(const CancelRequest& message);
  caf::result<ForkAccepted> fork(const ForkRequest& message);
  void open_session(const std::string& id, const ClientActor& client);
  void pass_on(RequestOutputs& message);
  void on_client_down(const caf::actor_addr& client);
  [[nodiscard]] bool serves() const noexcept { return phase_ == Phase::running || phase_ == Phase::draining; }
  /// Why a request is refused now.
  [[nodiscard]] Error refusal() const;

  // -- questions ---------------------------------------------------------------------------------------------------
  caf::result<Done> await_ready();
  caf::result<EngineStatistics> statistics();
  [[nodiscard]] EngineStatistics add_own(EngineStatistics statistics) const;
  caf::result<Done> check_invariants();
  void collect_tables(OpenPromises::Key key);

  // -- end ---------------------------------------------------------------------------------------------------------
  caf::result<EngineStatistics> shut_down(const Shutdown& message);
  void begin_shutdown(ShutdownMode mode, std::int64_t grace_ms);
  void cancel_all();
  void on_child_down(const caf::down_msg& message);
  /// Ends the engine because of `error`: every client hears of it at once.
  void fail_engine(Error error);
  /// Ends the next kind of actors, in the order scheduler, allocators, runner.
  void stop_next();
  void finish();

  /// Registers a promise for the message that is being handled.
  template <class Answer>
  std::pair<caf::typed_response_promise<Answer>, OpenPromises::Key> owe() {
    auto promise = self_->make_response_promise<Answer>();
    const OpenPromises::Key key = ledger_->promises.add(promise);
    return {promise, key};
  }
  /// An error handler that answers the promise.
  auto answer_error(OpenPromises::Key key) {
    return [this, key](const caf::error& error) { ledger_->promises.keep(key, to_caf_error(from_caf_error(error))); };
  }

  Self self_;
  EngineArguments arguments_;
  std::vector<LayerGroup> groups_;
  std::shared_ptr<BlockManager> manager_;
  std::shared_ptr<EngineLedger> ledger_ = std::make_shared<EngineLedger>();
  Phase phase_ = Phase::starting;
  /// Why the engine ended, if it was not asked to.
  std::optional<Error> failure_;
  std::vector<HeldRequest> held_;
  std::vector<OpenPromises::Key> ready_promises_;
  std::vector<OpenPromises::Key> shutdown_promises_;
  /// Whether the actor is to end when the others have ended.
  bool quit_when_stopped_ = false;
  /// Refused without asking the scheduler.
  std::uint64_t refused_requests_ = 0;
  /// Failed because the engine did.
  std::uint64_t failed_requests_ = 0;
  /// The scheduler's last word.
  EngineStatistics last_statistics_;
  TraceRecorder recorder_;
  std::shared_ptr<TraceLane> trace_;
};

/// Spawns an engine. The system's configuration must have gone through `configure_caf` or `register_messages`.
[[nodiscard]] EngineActor spawn_engine(caf::actor_system& system, EngineArguments arguments);

}  // namespace troupe
