#pragma once

#include <string>
#include <unordered_map>

#include "actors/messages.hpp"

namespace troupe {

/// State of the DISPATCHER.
struct DispatcherState {
  static inline const char* name = "dispatcher";

  // Not an aggregate: CAF would make one from the actor's own address.
  DispatcherState() = default;

  EngineActor engine;
  /// By request.
  std::unordered_map<std::string, OutputCallback> callbacks;
};

/// Calls callbacks with outputs. The engine accepts a request before it sends the first output, so none finds no
/// callback.
DispatcherActor::behavior_type dispatcher_actor(DispatcherActor::stateful_pointer<DispatcherState> self,
                                                const EngineActor& engine);

}  // namespace troupe
