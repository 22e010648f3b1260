#include "actors/engine_actor.hpp"

#include <utility>

#include "actors/cache_allocator_actor.hpp"
#include "actors/engine_setup.hpp"
#include "actors/model_runner_actor.hpp"
#include "actors/scheduler_actor.hpp"
#include "cache/layer_groups.hpp"

namespace troupe {

// -- start ------------------------------------------------------------------------------------------------------------

EngineActor::behavior_type EngineState::make_behavior(EngineArguments arguments) {
  arguments_ = std::move(arguments);
  set_quiet_handlers(self_);
  self_->set_down_handler([this](const caf::down_msg& message) { on_child_down(message); });
  self_->set_exit_handler([this](const caf::exit_msg&) {
    quit_when_stopped_ = true;
    begin_shutdown(ShutdownMode::cancel, 0);
  });
  self_->attach_functor([ledger = ledger_] { ledger->close({ErrorCode::shutting_down, "the engine was ended"}); });
  start();
  return {
      [this](RequestOutputs& message) { pass_on(message); },
      [this](SubmitRequest& message) { return submit(message); },
      [this](const CancelRequest& message) { return cancel(message); },
      [this](const ForkRequest& message) { return fork(message); },
      [this](const GetStatistics&) { return statistics(); },
      [this](const CheckInvariants&) { return check_invariants(); },
      [this](const AwaitReady&) { return await_ready(); },
      [this](const Shutdown& message) { return shut_down(message); },
      [this](const GraceOver&) {
        if (phase_ == Phase::draining) {
          cancel_all();
        }
      },
  };
}

void EngineState::start() {
  if (Result<void> checked = check_engine_settings(arguments_.config, arguments_.model); !checked) {
    fail_engine(std::move(checked.error()));
    return;
  }
  Result<std::vector<LayerGroup>> groups =
      make_layer_groups(arguments_.model.layer_types, arguments_.model.sliding_window);
  if (!groups) {
    fail_engine(std::move(groups.error()));
    return;
  }
  groups_ = std::move(*groups);
  trace_ = add_lane("engine");
  const auto runner_trace = add_lane("model runner");
  ModelRunnerActor& runner = ledger_->children.runner;
  runner = arguments_.runner_thread == RunnerThread::own ? self_->spawn<caf::detached>(model_runner_actor, runner_trace)
                                                         : self_->spawn(model_runner_actor, runner_trace);
  self_->monitor(runner);
  self_->request(runner, caf::infinite, MakeExecutor{arguments_.make_executor})
      .then([this](Done) { allocate_cache(); },
            [this](const caf::error& error) { fail_engine(from_caf_error(error)); });
}

void EngineState::allocate_cache() {
  if (phase_ != Phase::starting) {
    return;
  }
  const Result<std::int32_t> num_blocks = choose_num_blocks(arguments_.config, arguments_.model, groups_);
  if (!num_blocks) {
    fail_engine(num_blocks.error());
    return;
  }
  BlockManagerOptions options;
  options.num_blocks = *num_blocks;
  options.block_size = arguments_.config.block_size;
  manager_ = std::make_shared<BlockManager>(std::move(options));
  CacheShape shape{*num_blocks, arguments_.config.block_size, groups_, arguments_.config.poison_unwritten};
  self_->request(ledger_->children.runner, caf::infinite, std::move(shape))
      .then([this](Done) { serve(); }, [this](const caf::error& error) { fail_engine(from_caf_error(error)); });
}

void EngineState::serve() {
  if (phase_ != Phase::starting) {
    return;
  }
  const auto scheduler_trace = add_lane("scheduler");
  EngineChildren& children = ledger_->children;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const bool full = groups_[group].type == AttentionType::full;
    const CacheAllocatorArguments allocator{
        .group = static_cast<GroupId>(group),
        .layers = groups_[group],
        .manager = manager_,
        .block_sharing = arguments_.config.prefix_sharing,
        .runner = children.runner,
        .trace = add_lane("cache allocator " + std::to_string(group) + (full ? " (full)" : " (sliding)"))};
    self_->monitor(children.allocators.emplace_back(self_->spawn(cache_allocator_actor, allocator)));
  }
  const SchedulerArguments scheduler{.config = arguments_.config,
                                     .model = arguments_.model,
                                     .groups = groups_,
                                     .manager = manager_,
                                     .allocators = children.allocators,
                                     .runner = children.runner,
                                     .outputs = self_,
                                     .trace = scheduler_trace};
  children.scheduler = self_->spawn(scheduler_actor, scheduler);
  self_->monitor(children.scheduler);
  phase_ = Phase::running;
  for (const OpenPromises::Key key : std::exchange(ready_promises_, {})) {
    ledger_->promises.keep(key, Done{});
  }
  for (HeldRequest& held : std::exchange(held_, {})) {
    forward(std::move(held.message), held.key);
  }
}

std::shared_ptr<TraceLane> EngineState::add_lane(const std::string& lane_name) {
  return arguments_.config.trace_file.empty() ? nullptr : recorder_.add_lane(lane_name);
}

// -- requests ---------------------------------------------------------------------------------------------------------

caf::result<RequestAccepted> EngineState::submit(SubmitRequest& message) {
  const bool full =
      phase_ == Phase::starting && held_.size() >= static_cast<std::size_t>(arguments_.config.max_waiting_requests);
  if (full || (phase_ != Phase::starting && phase_ != Phase::running)) {
    ++refused_requests_;
    return to_caf_error(full ? Error{ErrorCode::overloaded, "max_waiting_requests (" + std::to_string(held_.size()) +
                                                                ") requests wait for the engine to start"}
                             : refusal());
  }
  auto [promise, key] = owe<RequestAccepted>();
  if (phase_ == Phase::starting) {
    held_.push_back({std::move(message), key});
  } else {
    forward(std::move(message), key);
  }
  return promise;
}

void EngineState::forward(SubmitRequest message, OpenPromises::Key key) {
  self_->request(ledger_->children.scheduler, caf::infinite, std::move(message.request))
      .then(
          [this, key, client = std::move(message.client)](RequestAccepted& accepted) {
            if (phase_ == Phase::stopping || phase_ == Phase::stopped) {
              ledger_->promises.keep(key, to_caf_error(refusal()));
              return;
            }
            open_session(accepted.id, client);
            ledger_->promises.keep(key, std::move(accepted));
          },
          answer_error(key));
}

caf::result<Done> EngineState::cancel(const CancelRequest& message) {
  if (!serves()) {
    return to_caf_error(refusal());
  }
  auto [promise, key] = owe<Done>();
  self_->request(ledger_->children.scheduler, caf::infinite, message)
      .then([this, key](Done) { ledger_->promises.keep(key, Done{}); }, answer_error(key));
  return promise;
}

caf::result<ForkAccepted> EngineState::fork(const ForkRequest& message) {
  if (phase_ != Phase::running) {
    return to_caf_error(refusal());
  }
  const ClientActor* client = ledger_->sessions.find(message.id);
  if (client == nullptr) {
    return to_caf_error({ErrorCode::unknown_request, "no request with id \"" + message.id + "\" is in flight"});
  }
  auto [promise, key] = owe<ForkAccepted>();
  self_->request(ledger_->children.scheduler, caf::infinite, message)
      .then(
          [this, key, client = *client](ForkAccepted& accepted) {
            if (phase_ == Phase::stopping || phase_ == Phase::stopped) {
              ledger_->promises.keep(key, to_caf_error(refusal()));
              return;
            }
            for (const std::string& id : accepted.ids) {
              open_session(id, client);
            }
            ledger_->promises.keep(key, std::move(accepted));
          },
          answer_error(key));
  return promise;
}

void EngineState::open_session(const std::string& id, const ClientActor& client) {
  if (!ledger_->sessions.has_client(client.address())) {
    self_->monitor(client);
  }
  ledger_->sessions.open(id, client);
}

void EngineState::pass_on(RequestOutputs& message) {
  const TraceScope scope(trace_, "deliver", message.outputs.size());
  for (RequestOutput& output : message.outputs) {
    const ClientActor* found = ledger_->sessions.find(output.id);
    if (found == nullptr) {
      continue;
    }
    const ClientActor client = *found;
    if (output.reason != FinishReason::none) {
      ledger_->sessions.close(output.id);
      if (!ledger_->sessions.has_client(client.address())) {
        self_->demonitor(client.address());
      }
    }
    self_->send(client, std::move(output));
  }
  if (phase_ == Phase::draining && ledger_->sessions.empty()) {
    cancel_all();
  }
}

void EngineState::on_client_down(const caf::actor_addr& client) {
  if (!serves()) {
    return;
  }
  for (std::string& id : ledger_->sessions.requests_of(client)) {
    // An error means that the request has just ended.
    self_->request(ledger_->children.scheduler, caf::infinite, CancelRequest{std::move(id)})
        .then([](Done) {}, [](const caf::error&) {});
  }
}

Error EngineState::refusal() const {
  if (failure_) {
    return {ErrorCode::shutting_down, "the engine has failed: " + failure_->message};
  }
  if (phase_ == Phase::starting) {
    return {ErrorCode::unknown_request, "the engine is starting, no request is in flight"};
  }
  return {ErrorCode::shutting_down, "the engine is shutting down"};
}

EngineActor spawn_engine(caf::actor_system& system, EngineArguments arguments) {
  const auto run = [](EngineState::Self self, const EngineArguments& given) {
    return self->state.make_behavior(given);
  };
  return system.spawn(run, std::move(arguments));
}

}  // namespace troupe
