/// From what the policy wants to what there are blocks for.

#include <algorithm>
#include <utility>

#include "actors/scheduler_impl.hpp"

namespace troupe {

/// Fits choices one after the other. Blocks run out for everybody, but never for the oldest active request as long as
/// somebody younger has some: that is what makes every request end.
class Scheduler::Impl::Fitting {
 public:
  Fitting(const Impl& scheduler, std::vector<Admission>& admissions, RequestState* starved)
      : scheduler_(scheduler),
        oldest_(scheduler.oldest_active()),
        available_(scheduler.manager.num_available_blocks()),
        tokens_left_(scheduler.config.max_batch_tokens),
        next_admission_(admissions.begin()),
        last_admission_(admissions.end()) {
    draft_.starved = starved;
  }

  /// Keeps the blocks that the oldest active request needs from all others.
  void hold_back_for_oldest(const std::vector<Choice>& choices) {
    for (const Choice& choice : choices) {
      if (oldest_ != nullptr && choice.request == oldest_->number) {
        held_back_ = blocks_for(oldest_->past_length, choice.query_length);
      }
    }
  }

  void add(const Choice& choice) {
    RequestState* state = scheduler_.find(choice.request);
    const std::int32_t query_length = std::min(choice.query_length, tokens_left_);
    if (state == nullptr || state->drafted_step == scheduler_.next_step_ || query_length < 1 || !has_room()) {
      return;
    }
    if (state->is_active()) {
      add_active(*state, query_length);
    } else {
      add_waiting(*state, query_length);
    }
  }

  [[nodiscard]] bool has_room() const {
    return tokens_left_ > 0 && std::cmp_less(draft_.rows.size(), scheduler_.config.max_batch_requests);
  }
  /// The first waiting request that was not admitted, or null.
  [[nodiscard]] const RequestState* first_left_out() const {
    return next_admission_ == last_admission_ ? nullptr : next_admission_->state;
  }
  [[nodiscard]] std::int64_t available() const { return available_; }
  [[nodiscard]] Draft& draft() { return draft_; }

 private:
  [[nodiscard]] std::int64_t blocks_for(std::int32_t past_length, std::int32_t query_length) const {
    return scheduler_.layout.blocks_to_grow(past_length, past_length + query_length);
  }

  void add_active(RequestState& state, std::int32_t wanted) {
    const std::int32_t query_length = std::min(wanted, state.tokens_to_plan(state.past_length));
    const std::int64_t needed = blocks_for(state.past_length, query_length);
    const bool is_oldest = &state == oldest_;
    if (needed > 0 && needed > available_ - (is_oldest ? 0 : held_back_)) {
      if (draft_.starved == nullptr || state.age < draft_.starved->age) {
        draft_.starved = &state;
      }
      draft_.dropped.push_back(state.number);
      return;
    }
    // While an older request is starved, younger ones must not take what it waits for.
    if (needed > 0 && draft_.starved != nullptr && draft_.starved->age < state.age) {
      draft_.dropped.push_back(state.number);
      return;
    }
    if (is_oldest) {
      held_back_ = 0;
    }
    if (query_length > 0) {
      take({.state = &state, .query_length = query_length, .prefix = {}}, needed);
    }
  }

  /// Strictly in order: nobody overtakes a waiting request that does not fit.
  void add_waiting(RequestState& state, std::int32_t wanted) {
    if (draft_.starved != nullptr || first_left_out() != &state) {
      return;
    }
    const auto cached = static_cast<std::int32_t>(next_admission_->prefix.size()) * scheduler_.layout.block_size();
    const std::int32_t query_length = std::min(wanted, state.tokens_to_plan(cached));
    const std::int64_t needed = blocks_for(cached, query_length);
    if (query_length < 1 || needed > available_ - held_back_) {
      return;
    }
    std::vector<BlockId> prefix = std::move(next_admission_->prefix);
    next_admission_->state = nullptr;
    ++next_admission_;
    take({.state = &state, .query_length = query_length, .prefix = std::move(prefix)}, needed);
  }

  void take(DraftRow row, std::int64_t needed) {
    row.state->drafted_step = scheduler_.next_step_;
    tokens_left_ -= row.query_length;
    available_ -= needed;
    draft_.num_blocks += needed;
    draft_.rows.push_back(std::move(row));
  }

  const Impl& scheduler_;
  const RequestState* oldest_;
  std::int64_t available_;
  std::int64_t held_back_ = 0;
  std::int32_t tokens_left_;
  std::vector<Admission>::iterator next_admission_;
  std::vector<Admission>::iterator last_admission_;
  Draft draft_;
};

Scheduler::Impl::Draft Scheduler::Impl::fit(const std::vector<Choice>& choices, std::vector<Admission>& admissions,
                                            RequestState* starved) {
  Fitting fitting(*this, admissions, starved);
  fitting.hold_back_for_oldest(choices);
  for (const Choice& choice : choices) {
    fitting.add(choice);
  }
  Draft& draft = fitting.draft();
  const RequestState* left_out = fitting.first_left_out();
  if (left_out != nullptr && draft.starved == nullptr && fitting.has_room()) {
    note_blocked(*left_out);
  }
  draft_forks(draft, fitting.available());
  return std::move(draft);
}

}  // namespace troupe
