#include "actors/engine.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_support.hpp"
#include "actors/dispatcher_actor.hpp"
#include "actors/engine_actor.hpp"
#include "actors/messages.hpp"

namespace troupe {

namespace {

struct SystemConfig : caf::actor_system_config {
  explicit SystemConfig(std::int32_t pool_threads) { configure_caf(*this, pool_threads); }
};

/// Asks an actor and waits for the answer. An actor that has ended answers with `shutting_down`.
template <class Answer, class Handle, class Question>
Result<Answer> ask(caf::actor_system& system, const Handle& actor, Question question) {
  caf::scoped_actor self{system};
  std::optional<Result<Answer>> result;
  self->request(actor, caf::infinite, std::move(question))
      .receive([&](Answer& answer) { result.emplace(std::move(answer)); },
               [&](caf::error& error) { result.emplace(tl::unexpected<Error>(from_caf_error(error))); });
  return std::move(*result);
}

}  // namespace

struct Engine::Impl {
  Impl(EngineConfig config, ModelDescription model, ExecutorFactory make_executor)
      : system_config(config.pool_threads),
        system(system_config),
        engine(spawn_engine(
            system,
            {.config = std::move(config), .model = std::move(model), .make_executor = std::move(make_executor)})),
        dispatcher(system.spawn(dispatcher_actor, engine)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  // The actor system's destructor waits for its actors.
  ~Impl() { caf::anon_send_exit(dispatcher, caf::exit_reason::user_shutdown); }

  SystemConfig system_config;
  caf::actor_system system;
  EngineActor engine;
  DispatcherActor dispatcher;
  std::mutex mutex;
  /// Set when the engine has ended.
  std::optional<EngineStatistics> last_statistics;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() { shutdown(ShutdownMode::cancel, std::chrono::milliseconds(0)); }

Result<std::unique_ptr<Engine>> Engine::create(EngineConfig config, ModelDescription model,
                                               ExecutorFactory make_executor) {
  // Before there is an actor system, which would take any number of threads.
  if (Result<void> checked = validate(config); !checked) {
    return tl::unexpected<Error>(std::move(checked.error()));
  }
  std::unique_ptr<Engine> engine(
      new Engine(std::make_unique<Impl>(std::move(config), std::move(model), std::move(make_executor))));
  if (Result<Done> ready = ask<Done>(engine->impl_->system, engine->impl_->engine, AwaitReady{}); !ready) {
    return tl::unexpected<Error>(std::move(ready.error()));
  }
  return engine;
}

Result<std::string> Engine::submit(Request request, OutputCallback on_output) {
  return ask<RequestAccepted>(impl_->system, impl_->dispatcher,
                              SubmitWithCallback{std::move(request), std::move(on_output)})
      .map([](RequestAccepted&& accepted) { return std::move(accepted.id); });
}

Result<void> Engine::cancel(const std::string& id) {
  return ask<Done>(impl_->system, impl_->engine, CancelRequest{id}).map([](Done) {});
}

Result<std::vector<std::string>> Engine::fork(const std::string& id, std::int32_t num_children, ForkOverrides overrides,
                                              OutputCallback on_output) {
  return ask<ForkAccepted>(impl_->system, impl_->dispatcher,
                           ForkWithCallback{{id, num_children, std::move(overrides)}, std::move(on_output)})
      .map([](ForkAccepted&& accepted) { return std::move(accepted.ids); });
}

EngineStatistics Engine::statistics() const {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->last_statistics) {
    return *impl_->last_statistics;
  }
  return ask<EngineStatistics>(impl_->system, impl_->engine, GetStatistics{}).value_or(EngineStatistics{});
}

Result<void> Engine::check_invariants() const {
  return ask<Done>(impl_->system, impl_->engine, CheckInvariants{}).map([](Done) {});
}

void Engine::shutdown(ShutdownMode mode, std::chrono::milliseconds grace) {
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->last_statistics) {
      return;
    }
  }
  Result<EngineStatistics> statistics =
      ask<EngineStatistics>(impl_->system, impl_->engine, Shutdown{mode, grace.count()});
  const std::scoped_lock lock(impl_->mutex);
  impl_->last_statistics = statistics ? std::move(*statistics) : EngineStatistics{};
}

}  // namespace troupe
