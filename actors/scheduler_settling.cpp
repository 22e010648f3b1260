/// What a step's result changes.

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

void Scheduler::Impl::settle(const StepResult& result) {
  if (in_flight_.empty() || in_flight_.front().step != result.step) {
    return;
  }
  const StepInFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();

  if (result.error.code != ErrorCode::none) {
    fail_step(step, result.error);
    return;
  }
  if (result.token_ids.size() != step.rows.size()) {
    fail_step(step, Error{ErrorCode::step_failed, "step " + std::to_string(step.step) + " returned " +
                                                      std::to_string(result.token_ids.size()) + " tokens for " +
                                                      std::to_string(step.rows.size()) + " rows"});
    return;
  }
  std::vector<const Error*> errors(step.rows.size(), nullptr);
  for (const auto& [row, error] : result.row_errors) {
    if (row >= 0 && std::cmp_less(row, errors.size())) {
      errors[static_cast<std::size_t>(row)] = &error;
    }
  }
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    RequestState* state = find(step.rows[row].request);
    // Ended, or computed again from the start: what this row says is not wanted any more.
    if (state == nullptr || step.step < state->first_valid_step) {
      continue;
    }
    if (errors[row] != nullptr) {
      finish(*state, FinishReason::failed, *errors[row]);
      continue;
    }
    settle_row(*state, step.rows[row], result.token_ids[row],
               row < result.logprobs.size() ? result.logprobs[row] : 0.0F);
  }
  for (const auto& [number, cache_epoch] : step.forked) {
    RequestState* state = find(number);
    if (state != nullptr && step.step >= state->first_valid_step) {
      note_settled(*state, cache_epoch);
    }
  }
}

void Scheduler::Impl::note_settled(RequestState& state, std::uint32_t cache_epoch) {
  --state.rows_in_flight;
  if (cache_epoch != state.cache_epoch && state.rows_in_flight == 0) {
    // Preempted: now all of its tokens are known.
    compute_hashes(state);
  }
  if (state.is_at_fork_point()) {
    ready_parents_.insert(state.number);
  }
}

void Scheduler::Impl::settle_row(RequestState& state, const RowInFlight& row, TokenId token, float logprob) {
  if (row.samples) {
    --state.promised_tokens;
    if (token < 0 || token >= model.vocab_size) {
      finish(state, FinishReason::failed,
             {ErrorCode::step_failed, "the step sampled token " + std::to_string(token) + ", outside [0, " +
                                          std::to_string(model.vocab_size) + ")"});
      return;
    }
    state.tokens.push_back(token);
    if (state.sampling.return_logprobs) {
      state.logprobs.push_back(logprob);
    }
  }
  if (row.cache_epoch == state.cache_epoch) {
    state.computed_length = row.past_length + row.query_length;
    complete_blocks(state);
    if (state.is_suspect() && state.computed_length >= state.suspect_until) {
      state.suspect_until = 0;
      suspects_.erase(state.age);
    }
  }
  if (row.samples && state.is_eos(token)) {
    finish(state, FinishReason::stop);
  } else if (row.samples && state.known_length() == state.max_total_length) {
    finish(state, FinishReason::length);
  } else {
    note_settled(state, row.cache_epoch);
    if (row.samples && state.streaming) {
      deliver(state, FinishReason::none);
    }
  }
}

void Scheduler::Impl::complete_blocks(RequestState& state) {
  if (!config.prefix_sharing || !state.prefix_sharing) {
    return;
  }
  const std::int32_t num_complete = state.computed_length / layout.block_size();
  if (num_complete == state.completed_blocks) {
    return;
  }
  const std::int32_t first = state.completed_blocks * layout.block_size();
  const std::int32_t last = num_complete * layout.block_size();
  completions_.push_back({.request = state.number,
                          .num_complete_blocks = num_complete - state.completed_blocks,
                          .first_position = first,
                          .tokens = {state.tokens.begin() + first, state.tokens.begin() + last}});
  state.completed_blocks = num_complete;
}

}  // namespace troupe
