/// How the ENGINE ends: asked to, or because an actor has died.

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <caf/exit_reason.hpp>
#include <spdlog/spdlog.h>

#include "actors/cache_allocator_actor.hpp"
#include "actors/engine_actor.hpp"
#include "actors/model_runner_actor.hpp"
#include "actors/scheduler_actor.hpp"

namespace troupe {

caf::result<EngineStatistics> EngineState::shut_down(const Shutdown& message) {
  auto [promise, key] = owe<EngineStatistics>();
  shutdown_promises_.push_back(key);
  quit_when_stopped_ = true;
  begin_shutdown(message.mode, message.grace_ms);
  return promise;
}

void EngineState::begin_shutdown(ShutdownMode mode, std::int64_t grace_ms) {
  switch (phase_) {
    case Phase::starting:
      // Nobody was accepted yet.
      phase_ = Phase::stopping;
      for (const HeldRequest& held : std::exchange(held_, {})) {
        ledger_->promises.keep(held.key, to_caf_error(refusal()));
      }
      for (const OpenPromises::Key key : std::exchange(ready_promises_, {})) {
        ledger_->promises.keep(key, to_caf_error(refusal()));
      }
      stop_next();
      return;
    case Phase::running:
    case Phase::draining: {
      if (mode == ShutdownMode::cancel || grace_ms <= 0 || ledger_->sessions.empty()) {
        cancel_all();
        return;
      }
      constexpr std::int64_t kLongestGraceMs = 7LL * 24 * 3600 * 1000;
      phase_ = Phase::draining;
      self_->delayed_send(self_, std::chrono::milliseconds(std::min(grace_ms, kLongestGraceMs)), GraceOver{});
      return;
    }
    case Phase::cancelling:
    case Phase::stopping:
      return;
    case Phase::stopped:
      finish();
      return;
  }
}

void EngineState::cancel_all() {
  phase_ = Phase::cancelling;
  const auto stop = [this] {
    if (phase_ != Phase::cancelling) {
      return;
    }
    phase_ = Phase::stopping;
    // The scheduler has sent every last output before its answer, so this finds none.
    failed_requests_ += ledger_->fail_sessions({ErrorCode::internal, "the scheduler did not end the request"});
    stop_next();
  };
  self_->request(ledger_->children.scheduler, caf::infinite, CancelAllRequests{})
      .then([stop](Done) { stop(); }, [stop](const caf::error&) { stop(); });
}

void EngineState::on_child_down(const caf::down_msg& message) {
  EngineChildren& children = ledger_->children;
  std::string ended;
  if (children.scheduler && message.source == children.scheduler.address()) {
    children.scheduler = nullptr;
    ended = SchedulerState::name;
  } else if (children.runner && message.source == children.runner.address()) {
    children.runner = nullptr;
    ended = ModelRunnerState::name;
  } else {
    const auto found = std::find_if(children.allocators.begin(), children.allocators.end(),
                                    [&](const auto& allocator) { return message.source == allocator.address(); });
    if (found == children.allocators.end()) {
      on_client_down(message.source);
      return;
    }
    children.allocators.erase(found);
    ended = CacheAllocatorState::name;
  }
  if (phase_ == Phase::stopping) {
    stop_next();
    return;
  }
  const Error reason = from_caf_error(message.reason);
  fail_engine({reason.code == ErrorCode::internal ? ErrorCode::internal : ErrorCode::step_failed,
               "the " + ended + " has ended: " + reason.message});
}

void EngineState::fail_engine(Error error) {
  if (phase_ == Phase::stopping || phase_ == Phase::stopped) {
    return;
  }
  spdlog::error("troupe: {}", error.message);
  failure_ = std::move(error);
  phase_ = Phase::stopping;
  failed_requests_ += ledger_->fail_sessions(*failure_);
  for (const OpenPromises::Key key : std::exchange(ready_promises_, {})) {
    ledger_->promises.keep(key, to_caf_error(*failure_));
  }
  for (const HeldRequest& held : std::exchange(held_, {})) {
    ledger_->promises.keep(held.key, to_caf_error(refusal()));
  }
  stop_next();
}

void EngineState::stop_next() {
  EngineChildren& children = ledger_->children;
  if (children.scheduler) {
    const auto end = [this] {
      if (ledger_->children.scheduler) {
        self_->send_exit(ledger_->children.scheduler, caf::exit_reason::user_shutdown);
      }
    };
    self_->request(children.scheduler, caf::infinite, GetStatistics{})
        .then(
            [this, end](EngineStatistics& statistics) {
              last_statistics_ = std::move(statistics);
              last_statistics_.running_requests = 0;
              last_statistics_.waiting_requests = 0;
              end();
            },
            [end](const caf::error&) { end(); });
  } else if (!children.allocators.empty()) {
    for (const CacheAllocatorActor& allocator : children.allocators) {
      self_->send_exit(allocator, caf::exit_reason::user_shutdown);
    }
  } else if (children.runner) {
    self_->send_exit(children.runner, caf::exit_reason::user_shutdown);
  } else {
    phase_ = Phase::stopped;
    if (quit_when_stopped_) {
      finish();
    }
  }
}

void EngineState::finish() {
  if (!arguments_.config.trace_file.empty()) {
    if (const Result<void> written = recorder_.write(arguments_.config.trace_file); !written) {
      spdlog::error("troupe: {}", written.error().message);
    }
  }
  for (const OpenPromises::Key key : std::exchange(shutdown_promises_, {})) {
    ledger_->promises.keep(key, add_own(last_statistics_));
  }
  self_->quit(caf::exit_reason::user_shutdown);
}

}  // namespace troupe
