#include "actors/request_state.hpp"

#include <algorithm>

namespace troupe {

bool RequestState::is_eos(TokenId token) const {
  return std::binary_search(eos_token_ids.begin(), eos_token_ids.end(), token);
}

bool RequestState::is_at_fork_point() const {
  return !children.empty() && is_active() && rows_in_flight == 0 && past_length == total_length() - 1;
}

std::int32_t RequestState::tokens_to_plan(std::int32_t past) const {
  const std::int32_t total = total_length();
  if (total >= max_total_length) {
    return 0;
  }
  return children.empty() || is_at_fork_point() ? total - past : std::max(total - 1 - past, 0);
}

std::pair<bool, std::uint64_t> RequestState::waiting_key() const {
  return age != 0 ? std::pair(false, age) : std::pair(true, number);
}

}  // namespace troupe
