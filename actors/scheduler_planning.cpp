/// Decide, reserve, commit.

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

std::optional<StepOrders> Scheduler::Impl::plan_step() {
  const bool is_full = in_flight_.size() >= static_cast<std::size_t>(config.pipeline_depth);
  if (is_full || should_await_prefixes()) {
    return take_housekeeping();
  }
  Draft draft = draft_retry();
  const RequestState* starved = draft.starved;
  if (draft.rows.empty()) {
    draft = draft_step();
    if (starved == nullptr || (draft.starved != nullptr && draft.starved->age < starved->age)) {
      starved = draft.starved;
    }
  }
  std::optional<StepOrders> orders;
  if (!draft.rows.empty()) {
    orders = commit(std::move(draft));
  }
  // Only after the commit, so that what the victim may still compute in this step is not lost.
  if (starved != nullptr) {
    preempt_for(*starved);
  }
  return orders ? std::move(orders) : take_housekeeping();
}

std::vector<Candidate> Scheduler::Impl::active_candidates() const {
  const auto limit = static_cast<std::size_t>(std::min(config.max_batch_requests, config.max_batch_tokens));
  const auto collect = [&](const std::map<std::uint64_t, RequestState*>& queue) {
    std::vector<const RequestState*> found;
    for (const auto& [age, state] : queue) {
      if (found.size() == limit) {
        break;
      }
      if (!state->is_suspect() && state->tokens_to_plan(state->past_length) > 0) {
        found.push_back(state);
      }
    }
    return found;
  };
  const std::vector<const RequestState*> prefilling = collect(prefilling_);
  const std::vector<const RequestState*> decoding = collect(decoding_);
  std::vector<const RequestState*> active;
  active.reserve(prefilling.size() + decoding.size());
  std::ranges::merge(prefilling, decoding, std::back_inserter(active), {}, &RequestState::age, &RequestState::age);

  std::vector<Candidate> candidates;
  candidates.reserve(active.size());
  for (const RequestState* state : active) {
    candidates.push_back(make_candidate(*state, state->past_length));
  }
  return candidates;
}

Candidate Scheduler::Impl::make_candidate(const RequestState& state, std::int32_t past_length) const {
  const std::int32_t remaining = state.tokens_to_plan(past_length);
  return Candidate{.request = state.number,
                   .remaining_tokens = remaining,
                   .past_length = past_length,
                   .decoding = state.status == RequestStatus::decoding,
                   .new_blocks = layout.blocks_to_grow(past_length, past_length + remaining)};
}

Scheduler::Impl::Draft Scheduler::Impl::draft_step() {
  SchedulerSnapshot snapshot;
  snapshot.active = active_candidates();
  std::vector<Admission> admissions = gather_admissions(snapshot.active);
  for (const Admission& admission : admissions) {
    const auto cached = static_cast<std::int32_t>(admission.prefix.size()) * layout.block_size();
    snapshot.waiting.push_back(make_candidate(*admission.state, cached));
  }
  snapshot.num_blocks = manager.num_blocks();
  snapshot.block_size = layout.block_size();
  snapshot.available_blocks = manager.num_available_blocks();
  snapshot.max_batch_tokens = config.max_batch_tokens;
  snapshot.max_batch_requests = config.max_batch_requests;

  Draft draft = fit(policy->decide(snapshot), admissions, nullptr);
  // Requests that lack blocks may have used up the budget of others that need none: decide again without them.
  while (draft.rows.empty() && !draft.dropped.empty()) {
    std::ranges::sort(draft.dropped);
    std::erase_if(snapshot.active, [&](const Candidate& candidate) {
      return std::ranges::binary_search(draft.dropped, candidate.request);
    });
    snapshot.waiting.clear();
    draft = fit(policy->decide(snapshot), admissions, draft.starved);
  }
  release_prefixes(admissions);
  return draft;
}

std::optional<StepOrders> Scheduler::Impl::commit(Draft draft) {
  if (!manager.reserve(static_cast<std::int32_t>(draft.num_blocks))) {
    // Only the scheduler takes blocks that were not reserved, so this cannot be; if it is, try again later.
    for (DraftRow& row : draft.rows) {
      (void)manager.free_blocks(row.prefix);
      row.state->drafted_step = 0;
    }
    return std::nullopt;
  }
  StepOrders orders = take_pending_orders();
  StepInFlight in_flight{.step = next_step_++, .rows = {}, .forked = {}};
  auto plan = std::make_shared<StepPlan>();
  plan->step = in_flight.step;
  plan->rows.reserve(draft.rows.size());
  in_flight.rows.reserve(draft.rows.size());
  for (RequestState* parent : draft.forks) {
    commit_fork(*parent, in_flight, orders);
  }
  for (DraftRow& row : draft.rows) {
    commit_row(row, static_cast<std::int32_t>(plan->rows.size()), *plan, in_flight, orders);
  }
  ++statistics_.steps;
  statistics_.forward_tokens += plan->token_ids.size();
  orders.plan = std::move(plan);
  in_flight_.push_back(std::move(in_flight));
  return orders;
}

void Scheduler::Impl::commit_row(DraftRow& draft, std::int32_t index, StepPlan& plan, StepInFlight& in_flight,
                                 StepOrders& orders) {
  RequestState& state = *draft.state;
  if (!state.is_active()) {
    activate(draft, orders);
  }
  const std::int32_t past = state.past_length;
  const std::int32_t end = past + draft.query_length;
  for (std::size_t group = 0; group < layout.num_groups(); ++group) {
    if (const std::int32_t blocks = layout.blocks_to_grow(group, past, end); blocks > 0) {
      orders.groups[group].extensions.push_back({.request = state.number, .num_blocks = blocks});
    }
  }

  StepRow row{.request = state.number,
              .past_length = past,
              .query_length = draft.query_length,
              .query_start = static_cast<std::int32_t>(plan.token_ids.size()),
              .samples = end == state.total_length(),
              .sampling = state.sampling};
  if (end > state.known_length()) {
    row.input_step = state.last_step;
    row.input_row = state.last_row;
    plan.token_ids.push_back(-1);
  } else {
    plan.token_ids.insert(plan.token_ids.end(), state.tokens.begin() + past, state.tokens.begin() + end);
  }
  plan.rows.push_back(row);

  state.past_length = end;
  state.last_step = plan.step;
  state.last_row = index;
  ++state.rows_in_flight;
  if (row.samples) {
    ++state.promised_tokens;
    if (state.status != RequestStatus::decoding) {
      take_out(state);
      put_in(state, RequestStatus::decoding);
    }
  }
  in_flight.rows.push_back(RowInFlight{.request = state.number,
                                       .cache_epoch = state.cache_epoch,
                                       .past_length = past,
                                       .query_length = draft.query_length,
                                       .samples = row.samples,
                                       .ends = row.samples && state.total_length() == state.max_total_length});
}

std::optional<StepOrders> Scheduler::Impl::take_housekeeping() {
  if (releases_.empty()) {
    return std::nullopt;
  }
  return take_pending_orders();
}

StepOrders Scheduler::Impl::take_pending_orders() {
  StepOrders orders;
  orders.ticket = next_ticket_++;
  orders.groups.resize(layout.num_groups());
  for (std::size_t group = 0; group < layout.num_groups(); ++group) {
    if (layout.shares_blocks(group)) {
      orders.groups[group].completions = completions_;
    }
    orders.groups[group].releases = releases_;
  }
  if (!releases_.empty()) {
    unacknowledged_.emplace(orders.ticket, layout.num_groups());
  }
  completions_.clear();
  releases_.clear();
  return orders;
}

void Scheduler::Impl::acknowledge(GroupId /*group*/, std::uint64_t ticket) {
  const auto found = unacknowledged_.find(ticket);
  if (found != unacknowledged_.end() && --found->second == 0) {
    unacknowledged_.erase(found);
  }
}

}  // namespace troupe
