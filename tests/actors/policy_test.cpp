/// The policies alone: pure functions of a snapshot.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/scheduling_policy.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using Choices = std::vector<std::pair<RequestId, std::int32_t>>;

Candidate decoding(RequestId request, std::int64_t new_blocks = 0) {
  return {.request = request, .remaining_tokens = 1, .past_length = 10, .decoding = true, .new_blocks = new_blocks};
}

Candidate prefilling(RequestId request, std::int32_t remaining, std::int64_t new_blocks = 0) {
  return {.request = request, .remaining_tokens = remaining, .past_length = 4, .new_blocks = new_blocks};
}

Candidate waiting(RequestId request, std::int32_t remaining, std::int64_t new_blocks = 0) {
  return {.request = request, .remaining_tokens = remaining, .past_length = 0, .new_blocks = new_blocks};
}

SchedulerSnapshot make_snapshot() {
  SchedulerSnapshot snapshot;
  snapshot.num_blocks = 100;
  snapshot.block_size = 4;
  snapshot.available_blocks = 100;
  snapshot.max_batch_tokens = 100;
  snapshot.max_batch_requests = 100;
  return snapshot;
}

Choices decide(const std::string& policy, const SchedulerSnapshot& snapshot, double safety_margin = -1) {
  Choices choices;
  for (const Choice& choice : make_scheduling_policy(policy, safety_margin).value()->decide(snapshot)) {
    choices.emplace_back(choice.request, choice.query_length);
  }
  return choices;
}

TEST_CASE("a policy is found by its name and knows it") {
  const std::string name = GENERATE("fifo", "prefill_first");
  CHECK(make_scheduling_policy(name, -1).value()->name() == name);
}

TEST_CASE("an empty snapshot leads to an empty step") {
  const std::string policy = GENERATE("fifo", "prefill_first");
  CHECK(decide(policy, make_snapshot()).empty());
}

TEST_CASE("fifo serves decoding requests before prompts before waiting ones") {
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.active = {prefilling(1, 5), decoding(2), prefilling(3, 6), decoding(4)};
  snapshot.waiting = {waiting(5, 7), waiting(6, 8)};
  CHECK(decide("fifo", snapshot) == Choices{{2, 1}, {4, 1}, {1, 5}, {3, 6}, {5, 7}, {6, 8}});
}

TEST_CASE("prefill_first serves prompts before decoding requests before waiting ones") {
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.active = {prefilling(1, 5), decoding(2), prefilling(3, 6), decoding(4)};
  snapshot.waiting = {waiting(5, 7), waiting(6, 8)};
  CHECK(decide("prefill_first", snapshot) == Choices{{1, 5}, {3, 6}, {2, 1}, {4, 1}, {5, 7}, {6, 8}});
}

TEST_CASE("a prompt is cut to what is left of the token budget") {
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.max_batch_tokens = 10;
  snapshot.active = {decoding(1)};
  snapshot.waiting = {waiting(2, 6), waiting(3, 6), waiting(4, 6)};
  CHECK(decide("fifo", snapshot) == Choices{{1, 1}, {2, 6}, {3, 3}});
}

TEST_CASE("a step has at most as many requests as its budget says") {
  const std::string policy = GENERATE("fifo", "prefill_first");
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.max_batch_requests = 3;
  snapshot.active = {decoding(1), decoding(2)};
  snapshot.waiting = {waiting(3, 2), waiting(4, 2)};
  CHECK(decide(policy, snapshot) == Choices{{1, 1}, {2, 1}, {3, 2}});
}

TEST_CASE("fifo admits only what leaves a fifth of the blocks free while others run") {
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.active = {decoding(1)};
  snapshot.waiting = {waiting(2, 10, 80)};
  CHECK(decide("fifo", snapshot) == Choices{{1, 1}, {2, 10}});
  snapshot.waiting = {waiting(2, 10, 81)};
  CHECK(decide("fifo", snapshot) == Choices{{1, 1}});
  CHECK(decide("fifo", snapshot, 0.0) == Choices{{1, 1}, {2, 10}});
  CHECK(decide("prefill_first", snapshot) == Choices{{1, 1}, {2, 10}});
}

TEST_CASE("the blocks of what was chosen before count as taken") {
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.active = {decoding(1, 1)};
  snapshot.waiting = {waiting(2, 10, 40), waiting(3, 10, 39), waiting(4, 10, 1)};
  CHECK(decide("fifo", snapshot) == Choices{{1, 1}, {2, 10}, {3, 10}});
}

TEST_CASE("nobody overtakes a waiting request that does not fit") {
  const std::string policy = GENERATE("fifo", "prefill_first");
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.active = {decoding(1)};
  snapshot.waiting = {waiting(2, 10, 101), waiting(3, 1, 1)};
  CHECK(decide(policy, snapshot) == Choices{{1, 1}});
}

TEST_CASE("a waiting request may take all blocks if nothing else runs") {
  const std::string policy = GENERATE("fifo", "prefill_first");
  SchedulerSnapshot snapshot = make_snapshot();
  snapshot.waiting = {waiting(2, 10, 100), waiting(3, 1, 1)};
  CHECK(decide(policy, snapshot) == Choices{{2, 10}});
}

}  // namespace
}  // namespace troupe::test
