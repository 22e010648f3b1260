/// One request becomes several with the same past.

#include <algorithm>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {
namespace {

/// More is a mistake of the caller rather than a tree of outputs that somebody reads.
constexpr std::int32_t kMaxChildren = 1024;

}  // namespace

Result<std::vector<std::string>> Scheduler::Impl::fork(const std::string& id, std::int32_t num_children,
                                                       const ForkOverrides& overrides) {
  const auto found = requests_by_id_.find(id);
  if (found == requests_by_id_.end()) {
    return fail(ErrorCode::unknown_request, "no request \"" + id + "\" is in flight");
  }
  RequestState& parent = *found->second;
  if (Result<void> checked = check_fork(parent, num_children, overrides); !checked) {
    return tl::unexpected<Error>(std::move(checked.error()));
  }
  std::vector<std::string> ids;
  for (std::int32_t i = 0; i < num_children; ++i) {
    auto child = std::make_unique<RequestState>();
    child->id = parent.id + "__child#" + std::to_string(parent.next_child++);
    child->sampling = overrides.sampling.value_or(parent.sampling);
    child->sampling.top_k = std::max(child->sampling.top_k, 0);
    child->eos_token_ids = parent.eos_token_ids;
    child->streaming = parent.streaming;
    child->prefix_sharing = parent.prefix_sharing;
    child->prompt_length = parent.prompt_length;
    child->max_total_length = overrides.max_new_tokens
                                  ? *resolve_total_length(parent.prompt_length, overrides.max_new_tokens, limits)
                                  : parent.max_total_length;
    child->tokens = parent.tokens;
    child->logprobs = parent.logprobs;
    RequestState& added = add_request(std::move(child));
    ids.push_back(added.id);
    if (parent.status == RequestStatus::forking) {
      compute_hashes(added);
      put_in(added, RequestStatus::waiting);
    } else {
      added.parent = &parent;
      put_in(added, RequestStatus::forking);
      if (parent.is_at_fork_point()) {
        ready_parents_.insert(parent.number);
      }
    }
  }
  return ids;
}

Result<void> Scheduler::Impl::check_fork(const RequestState& parent, std::int32_t num_children,
                                         const ForkOverrides& overrides) const {
  if (num_children < 1 || num_children > kMaxChildren) {
    return fail(ErrorCode::invalid_request, "num_children must be in [1, " + std::to_string(kMaxChildren) +
                                                "], but is " + std::to_string(num_children));
  }
  if (overrides.sampling) {
    if (Result<void> checked = check_sampling(*overrides.sampling); !checked) {
      return checked;
    }
    if (overrides.sampling->return_logprobs != parent.sampling.return_logprobs) {
      return fail(ErrorCode::invalid_request,
                  "sampling.return_logprobs of children must be their parent's, for they inherit its tokens");
    }
  }
  if (overrides.max_new_tokens) {
    if (std::cmp_less_equal(*overrides.max_new_tokens, parent.num_generated())) {
      return fail(ErrorCode::invalid_request,
                  "max_new_tokens of children must be above the " + std::to_string(parent.num_generated()) +
                      " tokens that they inherit, but is " + std::to_string(*overrides.max_new_tokens));
    }
    if (auto resolved = resolve_total_length(parent.prompt_length, overrides.max_new_tokens, limits); !resolved) {
      return tl::unexpected<Error>(std::move(resolved.error()));
    }
  }
  for (std::int32_t i = 0; i < num_children; ++i) {
    const std::string id = parent.id + "__child#" + std::to_string(parent.next_child + static_cast<std::uint64_t>(i));
    if (requests_by_id_.contains(id)) {
      return fail(ErrorCode::duplicate_id, "id \"" + id + "\" of a child is already in use by a request in flight");
    }
  }
  return check_queue_has_room(num_children);
}

void Scheduler::Impl::draft_forks(Draft& draft, std::int64_t available_blocks) {
  if (draft.rows.empty()) {
    return;
  }
  for (const RequestId number : std::exchange(ready_parents_, {})) {
    RequestState* parent = find(number);
    if (parent == nullptr || !parent->is_at_fork_point()) {
      continue;
    }
    finish_full_children(*parent);
    const std::int64_t needed = layout.blocks_to_fork(parent->past_length, parent->prefix_sharing) *
                                static_cast<std::int64_t>(parent->children.size());
    if (needed > available_blocks) {
      release_children(*parent);
    } else if (!parent->children.empty()) {
      available_blocks -= needed;
      draft.num_blocks += needed;
      draft.forks.push_back(parent);
    }
  }
}

void Scheduler::Impl::finish_full_children(RequestState& parent) {
  const std::vector<RequestState*> children = parent.children;
  for (RequestState* child : children) {
    if (child->max_total_length > parent.known_length()) {
      continue;
    }
    child->tokens.assign(parent.tokens.begin(), parent.tokens.begin() + child->max_total_length);
    child->logprobs.assign(parent.logprobs.begin(),
                           parent.logprobs.begin() +
                               std::min(std::ssize(parent.logprobs), std::ssize(child->tokens) - child->prompt_length));
    finish(*child, FinishReason::length);
  }
}

void Scheduler::Impl::commit_fork(RequestState& parent, StepInFlight& in_flight, StepOrders& orders) {
  const std::vector<RequestState*> children = parent.children;
  std::vector<RequestId> numbers;
  for (RequestState* child : children) {
    take_out(*child);
    numbers.push_back(child->number);
    in_flight.forked.emplace_back(child->number, child->cache_epoch);
    child->tokens = parent.tokens;
    child->logprobs = parent.logprobs;
    child->past_length = parent.past_length;
    child->computed_length = parent.computed_length;
    child->completed_blocks = parent.completed_blocks;
    child->cached_tokens = std::min(parent.past_length, parent.prompt_length);
    statistics_.cached_tokens += static_cast<std::uint64_t>(child->cached_tokens);
    child->age = next_age_++;
    // The copy counts like a row: before it is done, nothing may be copied from the child.
    ++child->rows_in_flight;
    put_in(*child, parent.status);
  }
  for (GroupOrders& group : orders.groups) {
    group.forks.push_back({.parent = parent.number, .children = numbers});
  }
}

void Scheduler::Impl::release_children(RequestState& parent) {
  const std::vector<RequestState*> children = parent.children;
  for (RequestState* child : children) {
    take_out(*child);
    compute_hashes(*child);
    put_in(*child, RequestStatus::waiting);
  }
}

}  // namespace troupe
