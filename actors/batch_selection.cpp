#include "actors/batch_selection.hpp"

#include <algorithm>

namespace troupe {

BatchSelection::BatchSelection(const SchedulerSnapshot& snapshot, double safety_margin)
    : snapshot_(snapshot),
      blocks_left_free_(safety_margin * snapshot.num_blocks),
      available_blocks_(snapshot.available_blocks),
      tokens_left_(snapshot.max_batch_tokens) {}

void BatchSelection::add_decoding() { add_active(/*decoding=*/true); }

void BatchSelection::add_prefilling() { add_active(/*decoding=*/false); }

void BatchSelection::add_active(bool decoding) {
  for (const Candidate& candidate : snapshot_.active) {
    if (is_full()) {
      return;
    }
    if (candidate.decoding == decoding) {
      choose(candidate);
    }
  }
}

void BatchSelection::add_waiting() {
  for (const Candidate& candidate : snapshot_.waiting) {
    const bool others_run = !snapshot_.active.empty() || !choices_.empty();
    const bool fits = static_cast<double>(available_blocks_ - candidate.new_blocks) >= blocks_left_free_;
    if (is_full() || (others_run && !fits)) {
      return;
    }
    choose(candidate);
  }
}

bool BatchSelection::is_full() const {
  return tokens_left_ == 0 || choices_.size() >= static_cast<std::size_t>(snapshot_.max_batch_requests);
}

void BatchSelection::choose(const Candidate& candidate) {
  const std::int32_t query_length = std::min(candidate.remaining_tokens, tokens_left_);
  tokens_left_ -= query_length;
  // The rest of a prompt that is cut here will want its blocks soon, so they count as taken.
  available_blocks_ -= candidate.new_blocks;
  choices_.push_back(Choice{.request = candidate.request, .query_length = query_length});
}

}  // namespace troupe
