#include "actors/cache_allocator_actor.hpp"

#include <optional>
#include <utility>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_support.hpp"
#include "actors/order_execution.hpp"

namespace troupe {

namespace {

using Self = CacheAllocatorActor::stateful_pointer<CacheAllocatorState>;

void handle(Self self, ExecuteOrders& message) {
  CacheAllocatorState& state = self->state;
  const bool acknowledge = message.plan == nullptr || !message.orders.releases.empty();
  const TraceScope scope(state.arguments.trace, message.plan ? "allocate" : "release",
                         message.plan ? message.plan->step : message.ticket);
  Result<std::optional<GroupInputs>> inputs =
      execute_group_orders(*state.allocator, std::move(message.orders), message.plan.get());
  if (!inputs) {
    self->quit(to_caf_error(inputs.error()));
    return;
  }
  if (*inputs) {
    self->send(state.arguments.runner, std::move(**inputs));
  }
  if (acknowledge) {
    self->send(message.scheduler, OrdersExecuted{state.arguments.group, message.ticket});
  }
}

}  // namespace

CacheAllocatorActor::behavior_type cache_allocator_actor(Self self, const CacheAllocatorArguments& arguments) {
  set_quiet_handlers(self);
  self->state.arguments = arguments;
  self->state.allocator =
      make_cache_allocator(arguments.group, arguments.layers, *arguments.manager, arguments.block_sharing);
  return {
      [self](ExecuteOrders& message) { handle(self, message); },
      [self](const GetBlockTables&) { return BlockTables{self->state.allocator->block_tables()}; },
  };
}

}  // namespace troupe
