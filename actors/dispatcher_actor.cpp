#include "actors/dispatcher_actor.hpp"

#include <exception>
#include <utility>

#include <caf/result.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include "actors/caf_support.hpp"

namespace troupe {

namespace {

using Self = DispatcherActor::stateful_pointer<DispatcherState>;

/// A callback that throws harms nobody else's output.
void call(const OutputCallback& callback, const RequestOutput& output) {
  if (!callback) {
    return;
  }
  try {
    callback(output);
  } catch (const std::exception& exception) {
    spdlog::error("troupe: the callback of request \"{}\" threw: {}", output.id, exception.what());
  } catch (...) {
    spdlog::error("troupe: the callback of request \"{}\" threw an exception of unknown type", output.id);
  }
}

void deliver(Self self, const RequestOutput& output) {
  auto& callbacks = self->state.callbacks;
  const auto found = callbacks.find(output.id);
  if (found == callbacks.end()) {
    return;
  }
  if (output.reason == FinishReason::none) {
    call(found->second, output);
    return;
  }
  const OutputCallback last = std::move(found->second);
  callbacks.erase(found);
  call(last, output);
}

/// The engine answers every request, also when it ends (`EngineLedger`).
template <class Answer, class Question, class Keep>
caf::result<Answer> ask_engine(Self self, Question question, Keep keep) {
  auto promise = self->make_response_promise<Answer>();
  self->request(self->state.engine, caf::infinite, std::move(question))
      .then(
          [promise, keep = std::move(keep)](Answer& answer) mutable {
            keep(answer);
            promise.deliver(std::move(answer));
          },
          [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
  return promise;
}

}  // namespace

DispatcherActor::behavior_type dispatcher_actor(Self self, const EngineActor& engine) {
  set_quiet_handlers(self);
  self->state.engine = engine;
  return {
      [self](const RequestOutput& output) { deliver(self, output); },
      [self](SubmitWithCallback& message) {
        return ask_engine<RequestAccepted>(
            self, SubmitRequest{std::move(message.request), DispatcherActor{self}},
            [self, on_output = std::move(message.on_output)](const RequestAccepted& accepted) {
              self->state.callbacks.emplace(accepted.id, on_output);
            });
      },
      [self](ForkWithCallback& message) {
        return ask_engine<ForkAccepted>(self, std::move(message.fork),
                                        [self, on_output = std::move(message.on_output)](const ForkAccepted& accepted) {
                                          for (const std::string& id : accepted.ids) {
                                            self->state.callbacks.emplace(id, on_output);
                                          }
                                        });
      },
  };
}

}  // namespace troupe
