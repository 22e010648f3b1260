#include "actors/order_execution.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

Result<void> complete(CacheAllocator& allocator, const std::vector<GroupOrders::Completion>& completions) {
  for (const GroupOrders::Completion& completion : completions) {
    if (Result<void> done = allocator.mark_shareable_blocks_as_complete(
            completion.request, completion.num_complete_blocks, completion.tokens, completion.first_position);
        !done) {
      return done;
    }
  }
  return {};
}

Result<void> release(CacheAllocator& allocator, const std::vector<RequestId>& releases) {
  for (const RequestId request : releases) {
    if (!allocator.free_blocks(request)) {
      return fail(ErrorCode::internal, "group " + std::to_string(allocator.group()) + ": request " +
                                           std::to_string(request) + " has no blocks to release");
    }
  }
  return {};
}

Result<void> adopt(CacheAllocator& allocator, std::vector<GroupOrders::Adoption>& adoptions) {
  for (GroupOrders::Adoption& adoption : adoptions) {
    if (Result<void> done = allocator.adopt_blocks(adoption.request, std::move(adoption.blocks)); !done) {
      return done;
    }
  }
  return {};
}

Result<std::vector<BlockCopy>> fork(CacheAllocator& allocator, const std::vector<GroupOrders::Fork>& forks) {
  std::vector<BlockCopy> copies;
  for (const GroupOrders::Fork& fork : forks) {
    Result<std::vector<BlockCopy>> forked = allocator.fork_blocks(fork.parent, fork.children, Claim::reserved);
    if (!forked) {
      return forked;
    }
    copies.insert(copies.end(), forked->begin(), forked->end());
  }
  return copies;
}

Result<void> extend(CacheAllocator& allocator, const std::vector<GroupOrders::Extension>& extensions) {
  for (const GroupOrders::Extension& extension : extensions) {
    const std::optional<std::int32_t> granted =
        allocator.allocate_blocks(extension.request, extension.num_blocks, Claim::reserved);
    if (granted != extension.num_blocks) {
      return fail(ErrorCode::internal, "group " + std::to_string(allocator.group()) + ": request " +
                                           std::to_string(extension.request) + " needs " +
                                           std::to_string(extension.num_blocks) + " more blocks, but gets " +
                                           (granted ? std::to_string(*granted) : "none"));
    }
  }
  return {};
}

Result<GroupInputs> build_inputs(const CacheAllocator& allocator, const StepPlan& plan) {
  GroupInputs inputs;
  inputs.step = plan.step;
  inputs.group = allocator.group();
  inputs.block_table_offsets.reserve(plan.rows.size() + 1);
  inputs.block_table_offsets.push_back(0);
  inputs.slot_mapping.reserve(plan.token_ids.size());
  for (const StepRow& row : plan.rows) {
    if (Result<void> appended = allocator.append_step_inputs(row, inputs); !appended) {
      return tl::unexpected<Error>(std::move(appended.error()));
    }
  }
  return inputs;
}

}  // namespace

Result<std::optional<GroupInputs>> execute_group_orders(CacheAllocator& allocator, GroupOrders orders,
                                                        const StepPlan* plan) {
  Result<void> done = complete(allocator, orders.completions);
  if (done) {
    done = release(allocator, orders.releases);
  }
  if (done) {
    done = adopt(allocator, orders.adoptions);
  }
  if (!done) {
    return tl::unexpected<Error>(std::move(done.error()));
  }
  Result<std::vector<BlockCopy>> copies = fork(allocator, orders.forks);
  if (!copies) {
    return tl::unexpected<Error>(std::move(copies.error()));
  }
  if (done = extend(allocator, orders.extensions); !done) {
    return tl::unexpected<Error>(std::move(done.error()));
  }
  if (plan == nullptr) {
    if (!copies->empty()) {
      return fail(ErrorCode::internal, "orders without a step fork a request whose blocks must be copied");
    }
    return std::nullopt;
  }
  Result<GroupInputs> inputs = build_inputs(allocator, *plan);
  if (!inputs) {
    return tl::unexpected<Error>(std::move(inputs.error()));
  }
  inputs->copies = std::move(*copies);
  return std::optional<GroupInputs>(std::move(*inputs));
}

}  // namespace troupe
