#pragma once

#include <memory>

#include "actors/messages.hpp"
#include "actors/trace.hpp"
#include "cache/block_manager.hpp"
#include "cache/cache_allocator.hpp"

namespace troupe {

/// What a CACHE ALLOCATOR is made of.
struct CacheAllocatorArguments {
  GroupId group = 0;
  LayerGroup layers;
  std::shared_ptr<BlockManager> manager;
  bool block_sharing = true;
  ModelRunnerActor runner;
  /// Null if nothing is recorded.
  std::shared_ptr<TraceLane> trace;
};

/// State of a CACHE ALLOCATOR. What it does is in `CacheAllocator` and `execute_group_orders`, which need
/// no actor system.
struct CacheAllocatorState {
  static inline const char* name = "cache allocator";
  CacheAllocatorArguments arguments;
  std::unique_ptr<CacheAllocator> allocator;
};

/// Serves one layer group. Ends with the error as its exit reason if orders cannot be executed.
CacheAllocatorActor::behavior_type cache_allocator_actor(
    CacheAllocatorActor::stateful_pointer<CacheAllocatorState> self, const CacheAllocatorArguments& arguments);

}  // namespace troupe
