#include "actors/cache_allocator_actor.hpp"

#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_support.hpp"

namespace troupe {

namespace {

using Self = CacheAllocatorActor::stateful_pointer<CacheAllocatorState>;

Result<void> extend(CacheAllocator& allocator, const GroupOrders::Extension& extension) {
  if (!allocator.allocate_blocks(extension.request, extension.num_blocks, Claim::reserved)) {
    return fail(ErrorCode::internal, "group " + std::to_string(allocator.group()) + ": the reservation does not cover " +
                                         std::to_string(extension.num_blocks) + " blocks of request " +
                                         std::to_string(extension.request));
  }
  return {};
}

/// Executes the orders and returns the inputs of the step, if they belong to one.
Result<std::optional<GroupInputs>> execute(CacheAllocator& allocator, ExecuteOrders& message) {
  Result<std::vector<BlockCopy>> copies = execute_orders(allocator, message.orders);
  if (!copies) {
    return tl::unexpected(std::move(copies.error()));
  }
  if (message.plan == nullptr) {
    if (!copies->empty()) {
      return fail(ErrorCode::internal, "orders without a step fork a request whose blocks must be copied");
    }
    return std::nullopt;
  }
  GroupInputs inputs;
  inputs.step = message.plan->step;
  inputs.group = allocator.group();
  inputs.copies = std::move(*copies);
  inputs.block_table_offsets = {0};
  inputs.slot_mapping.reserve(message.plan->token_ids.size());
  for (const StepRow& row : message.plan->rows) {
    if (Result<void> appended = allocator.append_step_inputs(row, inputs); !appended) {
      return tl::unexpected(std::move(appended.error()));
    }
  }
  return inputs;
}

void handle(Self self, ExecuteOrders& message) {
  CacheAllocatorState& state = self->state;
  const bool acknowledge = message.plan == nullptr || !message.orders.releases.empty();
  const TraceScope scope(state.arguments.trace, message.plan ? "allocate" : "release",
                         message.plan ? message.plan->step : message.ticket);
  Result<std::optional<GroupInputs>> inputs = execute(*state.allocator, message);
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

Result<std::vector<BlockCopy>> execute_orders(CacheAllocator& allocator, GroupOrders& orders) {
  for (const GroupOrders::Completion& completion : orders.completions) {
    if (Result<void> done = allocator.mark_shareable_blocks_as_complete(
            completion.request, completion.num_complete_blocks, completion.tokens, completion.first_position);
        !done) {
      return tl::unexpected(std::move(done.error()));
    }
  }
  for (const RequestId request : orders.releases) {
    // A request that ended before its first step has no table.
    allocator.free_blocks(request);
  }
  for (GroupOrders::Adoption& adoption : orders.adoptions) {
    if (Result<void> done = allocator.adopt_blocks(adoption.request, std::move(adoption.blocks)); !done) {
      return tl::unexpected(std::move(done.error()));
    }
  }
  std::vector<BlockCopy> copies;
  for (const GroupOrders::Fork& fork : orders.forks) {
    Result<std::vector<BlockCopy>> forked = allocator.fork_blocks(fork.parent, fork.children, Claim::reserved);
    if (!forked) {
      return tl::unexpected(std::move(forked.error()));
    }
    copies.insert(copies.end(), forked->begin(), forked->end());
  }
  for (const GroupOrders::Extension& extension : orders.extensions) {
    if (Result<void> done = extend(allocator, extension); !done) {
      return tl::unexpected(std::move(done.error()));
    }
  }
  return copies;
}

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
