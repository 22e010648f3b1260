#pragma once

/// What a cache allocator does with the scheduler's orders, without an actor system.

#include <optional>

#include "actors/scheduler.hpp"
#include "cache/cache_allocator.hpp"
#include "cache/error.hpp"
#include "cache/step.hpp"

namespace troupe {

/// Executes `orders` in their order: complete, release, adopt, fork, extend. With a plan it then builds the group's
/// inputs for that step; without one (housekeeping) there are none. An error is always a bug of the bookkeeping; what
/// comes after it is left undone.
/// @param plan Null for housekeeping, which must not fork.
[[nodiscard]] Result<std::optional<GroupInputs>> execute_group_orders(CacheAllocator& allocator, GroupOrders orders,
                                                                      const StepPlan* plan);

}  // namespace troupe
