#pragma once

/// The inside of `Scheduler`, cut into files by concern: requests (scheduler.cpp), planning, fitting, admission, forks,
/// recovery (preemption and failed steps), settling, invariants.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cache_layout.hpp"
#include "actors/request_checks.hpp"
#include "actors/request_state.hpp"
#include "actors/scheduler.hpp"

namespace troupe {

struct Scheduler::Impl {
  // ---- Parts of a step ----

  /// One row of a step in flight.
  struct RowInFlight {
    RequestId request = 0;
    std::uint32_t cache_epoch = 0;
    std::int32_t past_length = 0;
    std::int32_t query_length = 0;
    bool samples = false;
    /// Whether the request ends with the token that this row samples, whichever it is.
    bool ends = false;
  };

  struct StepInFlight {
    StepId step = 0;
    std::vector<RowInFlight> rows;
    /// Children whose blocks this step copies, and their `cache_epoch`.
    std::vector<std::pair<RequestId, std::uint32_t>> forked;
  };

  /// A waiting request that holds a reference on its cached prefix while it is decided whether it is admitted.
  struct Admission {
    RequestState* state = nullptr;
    std::vector<BlockId> prefix;
  };

  /// One row of a step to be.
  struct DraftRow {
    RequestState* state = nullptr;
    std::int32_t query_length = 0;
    /// For a waiting request.
    std::vector<BlockId> prefix;
  };

  /// A decided step whose blocks are known to be there. Nothing has changed for it yet.
  struct Draft {
    std::vector<DraftRow> rows;
    /// Parents that fork in this step.
    std::vector<RequestState*> forks;
    std::int64_t num_blocks = 0;
    /// The oldest active request that was dropped for want of blocks.
    RequestState* starved = nullptr;
    /// All active requests that were dropped.
    std::vector<RequestId> dropped;
  };

  Impl(EngineConfig engine_config, ModelDescription model_description, std::vector<LayerGroup> groups,
       BlockManager& block_manager, std::unique_ptr<SchedulingPolicy> scheduling_policy);

  // ---- Requests (scheduler.cpp) ----
  [[nodiscard]] Result<std::string> submit(Request request);
  [[nodiscard]] Result<void> cancel(const std::string& id);
  void cancel_all();
  /// The request, or null if it has ended.
  [[nodiscard]] RequestState* find(RequestId number) const;
  [[nodiscard]] Result<void> check_queue_has_room(std::int64_t num_requests) const;
  [[nodiscard]] std::string make_up_id();
  RequestState& add_request(std::unique_ptr<RequestState> state);
  /// Sends what the client does not have yet. With a reason, it is the last output.
  void deliver(RequestState& state, FinishReason reason, Error error = {});
  /// Ends the request: last output, blocks ordered back, forgotten.
  void finish(RequestState& state, FinishReason reason, Error error = {});
  /// Removes it from, or puts it into, the queue that its status says.
  void take_out(RequestState& state);
  void put_in(RequestState& state, RequestStatus status);

  // ---- Planning (scheduler_planning.cpp) ----
  [[nodiscard]] std::optional<StepOrders> plan_step();
  [[nodiscard]] std::vector<Candidate> active_candidates() const;
  [[nodiscard]] Candidate make_candidate(const RequestState& state, std::int32_t past_length) const;
  /// Decides by the policy, with only those requests that fit.
  [[nodiscard]] Draft draft_step();
  [[nodiscard]] std::optional<StepOrders> commit(Draft draft);
  void commit_row(DraftRow& draft, std::int32_t index, StepPlan& plan, StepInFlight& in_flight, StepOrders& orders);
  /// Orders without a step, if blocks are to come back.
  [[nodiscard]] std::optional<StepOrders> take_housekeeping();
  /// New orders with the completions and releases that have piled up.
  [[nodiscard]] StepOrders take_pending_orders();
  void acknowledge(GroupId group, std::uint64_t ticket);
  [[nodiscard]] bool blocks_are_coming_back() const { return !releases_.empty() || !unacknowledged_.empty(); }

  // ---- Fitting (scheduler_fitting.cpp) ----
  class Fitting;
  /// Keeps the choices that there are blocks for. Admitted requests are taken out of `admissions` (null state).
  /// @param starved The oldest request that is known to lack blocks, or null.
  [[nodiscard]] Draft fit(const std::vector<Choice>& choices, std::vector<Admission>& admissions,
                          RequestState* starved);

  // ---- Admission (scheduler_admission.cpp) ----
  [[nodiscard]] Admission acquire_prefix(RequestState& state);
  /// Waiting requests that may find room beside the active ones, whose blocks must not be used up by prefixes.
  [[nodiscard]] std::vector<Admission> gather_admissions(const std::vector<Candidate>& active);
  void note_blocked(const RequestState& state);
  void release_prefixes(std::vector<Admission>& admissions);
  /// Whether a prefix that just became complete may be on its way to being findable, and nothing else is to do.
  [[nodiscard]] bool should_await_prefixes() const;
  /// Makes the hashes that a prefix search for the request's known tokens needs.
  void compute_hashes(RequestState& state) const;
  void activate(DraftRow& row, StepOrders& orders);

  // ---- Forks (scheduler_forks.cpp) ----
  [[nodiscard]] Result<std::vector<std::string>> fork(const std::string& id, std::int32_t num_children,
                                                      const ForkOverrides& overrides);
  [[nodiscard]] Result<void> check_fork(const RequestState& parent, std::int32_t num_children,
                                        const ForkOverrides& overrides) const;
  /// Adds the forks that this step can carry; children that do not fit start to wait.
  void draft_forks(Draft& draft, std::int64_t available_blocks);
  /// Ends those children whose limit the parent has reached before it could fork.
  void finish_full_children(RequestState& parent);
  void commit_fork(RequestState& parent, StepInFlight& in_flight, StepOrders& orders);
  /// Makes requests of their own out of the parent's children.
  void release_children(RequestState& parent);

  // ---- Recovery (scheduler_recovery.cpp) ----
  /// Takes the blocks of the youngest active request, if `starved` is older and no blocks come back otherwise.
  void preempt_for(const RequestState& starved);
  /// Makes an active request wait: its blocks go back, its tokens stay.
  void requeue(RequestState& state);
  /// A row of the request failed together with others. Fails it if it had been alone, else lets it try alone.
  void retry_alone(RequestState& state, const RowInFlight& row, const Error& error);
  /// Makes rows in flight of the request count for nothing.
  void void_rows(RequestState& state) const;
  /// The step of a request that tries alone; empty if there is none that could run now.
  [[nodiscard]] Draft draft_retry();
  void fail_step(const StepInFlight& step, const Error& error);
  [[nodiscard]] RequestState* oldest_active() const;
  [[nodiscard]] RequestState* youngest_active() const;

  // ---- Settling (scheduler_settling.cpp) ----
  void settle(const StepResult& result);
  void settle_row(RequestState& state, const RowInFlight& row, TokenId token, float logprob);
  /// A row, or a copy, of a request that goes on has settled.
  void note_settled(RequestState& state, std::uint32_t cache_epoch);
  /// Orders the blocks that are full now to be hashed.
  void complete_blocks(RequestState& state);

  // ---- Invariants (scheduler_invariants.cpp) ----
  [[nodiscard]] Result<void> check_invariants() const;
  [[nodiscard]] Result<void> check_state(const RequestState& state) const;
  [[nodiscard]] Result<void> check_queues() const;
  [[nodiscard]] Result<void> check_rows_in_flight() const;

  const EngineConfig config;
  const ModelDescription model;
  const CacheLayout layout;
  const LengthLimits limits;
  BlockManager& manager;
  const std::unique_ptr<SchedulingPolicy> policy;

  std::unordered_map<RequestId, std::unique_ptr<RequestState>> requests_;
  std::unordered_map<std::string, RequestState*> requests_by_id_;
  std::map<std::pair<bool, std::uint64_t>, RequestState*> waiting_;
  /// By age.
  std::map<std::uint64_t, RequestState*> prefilling_;
  std::map<std::uint64_t, RequestState*> decoding_;
  /// Every request at its fork point; others may be in it too.
  std::set<RequestId> ready_parents_;
  std::int32_t num_forking_ = 0;
  /// Requests that must run alone, by age; they are also in the queue of their status.
  std::map<std::uint64_t, RequestState*> suspects_;

  std::deque<StepInFlight> in_flight_;
  /// Go out with the next orders.
  std::vector<GroupOrders::Completion> completions_;
  std::vector<RequestId> releases_;
  /// Tickets of orders that release blocks, with the number of groups that have not executed them.
  std::map<std::uint64_t, std::size_t> unacknowledged_;
  /// Blocks beside what the active requests need, when admissions were last gathered.
  std::int64_t spare_blocks_ = 0;
  /// The waiting request for which these were too few last, and how many there were. It is not looked at again before
  /// there are more.
  RequestId blocked_request_ = 0;
  std::int64_t blocked_at_spare_ = 0;
  std::vector<RequestOutput> outputs_;

  RequestId next_number_ = 1;
  std::uint64_t next_made_up_id_ = 0;
  std::uint64_t next_age_ = 1;
  StepId next_step_ = 1;
  std::uint64_t next_ticket_ = 1;
  /// Only the fields that the scheduler counts.
  EngineStatistics statistics_;
};

}  // namespace troupe
