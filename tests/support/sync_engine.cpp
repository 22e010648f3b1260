#include "tests/support/sync_engine.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "actors/order_execution.hpp"

namespace troupe::test {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

template <class T>
T require(Result<T> result) {
  if (!result) {
    throw std::logic_error(result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

std::unique_ptr<Scheduler> make_scheduler(const SyncEngineOptions& options, BlockManager& manager) {
  require(validate(options.config));
  std::unique_ptr<SchedulingPolicy> policy =
      options.policy ? options.policy()
                     : require(make_scheduling_policy(options.config.scheduler, options.config.safety_margin));
  return std::make_unique<Scheduler>(options.config, options.model, options.groups, manager, std::move(policy));
}

}  // namespace

SyncEngineOptions default_options(std::int32_t num_blocks, std::int32_t block_size) {
  SyncEngineOptions options;
  options.config.num_blocks = num_blocks;
  options.config.block_size = block_size;
  options.model.name = "simulated";
  options.model.vocab_size = 512;
  options.model.max_position_embeddings = 1024;
  options.model.layer_types = {AttentionType::full};
  options.groups = {LayerGroup{.type = AttentionType::full, .sliding_window = 0, .layers = {0}}};
  return options;
}

SyncEngine::SyncEngine(SyncEngineOptions options)
    : options_(std::move(options)),
      manager_([this] {
        BlockManagerOptions manager = options_.manager;
        manager.num_blocks = options_.config.num_blocks;
        manager.block_size = options_.config.block_size;
        return manager;
      }()),
      executor_([this] {
        options_.executor.vocab_size = options_.model.vocab_size;
        return options_.executor;
      }()),
      scheduler_(make_scheduler(options_, manager_)),
      orders_(options_.groups.size()) {
  for (std::size_t group = 0; group < options_.groups.size(); ++group) {
    allocators_.push_back(make_cache_allocator(static_cast<GroupId>(group), options_.groups[group], manager_,
                                               options_.config.prefix_sharing));
  }
  require(executor_.allocate_cache(
      {.num_blocks = options_.config.num_blocks, .block_size = options_.config.block_size, .groups = options_.groups}));
  if (options_.seed) {
    random_.emplace(*options_.seed);
  }
}

Result<std::string> SyncEngine::submit(Request request) {
  Result<std::string> id = scheduler_->submit(std::move(request));
  if (id) {
    require(results_.emplace(*id, Collected{}).second || results_[*id].reason != FinishReason::none,
            "id " + *id + " was accepted twice");
    results_[*id] = Collected{};
  }
  return id;
}

std::string SyncEngine::accept(Request request) { return require(submit(std::move(request))); }

Result<void> SyncEngine::cancel(const std::string& id) {
  Result<void> cancelled = scheduler_->cancel(id);
  collect_outputs();
  return cancelled;
}

void SyncEngine::cancel_all() {
  scheduler_->cancel_all();
  collect_outputs();
}

Result<std::vector<std::string>> SyncEngine::fork(const std::string& id, std::int32_t num_children,
                                                  const ForkOverrides& overrides) {
  Result<std::vector<std::string>> ids = scheduler_->fork(id, num_children, overrides);
  if (ids) {
    for (const std::string& child : *ids) {
      results_[child] = Collected{};
    }
  }
  return ids;
}

bool SyncEngine::advance() {
  std::vector<std::function<bool()>> actions{[this] { return deliver_acknowledgement(); },
                                             [this] { return deliver_result(); }, [this] { return plan(); }};
  for (std::size_t group = 0; group < orders_.size(); ++group) {
    actions.emplace_back([this, group] { return execute_orders(group); });
  }
  actions.emplace_back([this] { return execute_step(); });
  if (random_) {
    std::ranges::shuffle(actions, *random_);
  }
  return std::ranges::any_of(actions, [](const auto& action) { return action(); });
}

void SyncEngine::run() {
  run_until([] { return false; });
  check_idle();
}

void SyncEngine::run_until(const std::function<bool()>& condition) {
  constexpr int kMaxActions = 10'000'000;
  for (int i = 0; i < kMaxActions; ++i) {
    if (condition() || !advance()) {
      return;
    }
  }
  throw std::logic_error("the engine does not come to an end");
}

void SyncEngine::run_steps(std::int32_t num_steps) {
  const std::uint64_t target = num_settled_ + static_cast<std::uint64_t>(num_steps);
  run_until([&] { return num_settled_ >= target; });
}

bool SyncEngine::plan() {
  std::optional<StepOrders> orders = scheduler_->plan_step();
  collect_outputs();
  if (!orders) {
    return false;
  }
  for (std::size_t group = 0; group < orders_.size(); ++group) {
    orders_[group].push_back({orders->ticket, std::move(orders->groups[group]), orders->plan});
  }
  if (orders->plan == nullptr) {
    ++num_housekeepings_;
    return true;
  }
  steps_.push_back({orders->plan, std::vector<std::optional<GroupInputs>>(orders_.size())});
  if (keeps_plans) {
    plans_.push_back(orders->plan);
  }
  return true;
}

bool SyncEngine::execute_orders(std::size_t group) {
  if (orders_[group].empty()) {
    return false;
  }
  Orders next = std::move(orders_[group].front());
  orders_[group].pop_front();
  const bool acknowledges = next.plan == nullptr || !next.orders.releases.empty();
  std::optional<GroupInputs> inputs =
      require(execute_group_orders(*allocators_[group], std::move(next.orders), next.plan.get()));
  if (inputs) {
    const auto step = std::ranges::find(steps_, inputs->step, [](const Step& entry) { return entry.plan->step; });
    require(step != steps_.end(), "inputs for a step that was not planned");
    step->inputs[group] = std::move(inputs);
  }
  if (acknowledges) {
    acknowledgements_.push_back({static_cast<GroupId>(group), next.ticket});
  }
  return true;
}

bool SyncEngine::execute_step() {
  const auto is_there = [](const std::optional<GroupInputs>& inputs) { return inputs.has_value(); };
  if (steps_.empty() || !std::ranges::all_of(steps_.front().inputs, is_there)) {
    return false;
  }
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  std::vector<GroupInputs> inputs;
  for (const std::optional<GroupInputs>& of_group : step.inputs) {
    inputs.push_back(*of_group);
  }
  StepResult result;
  try {
    result = executor_.execute(*step.plan, inputs);
  } catch (const std::bad_alloc& exception) {
    result.step = step.plan->step;
    result.error = {ErrorCode::step_failed, exception.what()};
  }
  step_results_.push_back(std::move(result));
  return true;
}

bool SyncEngine::deliver_result() {
  if (step_results_.empty()) {
    return false;
  }
  const StepResult result = std::move(step_results_.front());
  step_results_.pop_front();
  scheduler_->settle(result);
  ++num_settled_;
  collect_outputs();
  check_invariants();
  return true;
}

bool SyncEngine::deliver_acknowledgement() {
  if (acknowledgements_.empty()) {
    return false;
  }
  scheduler_->acknowledge(acknowledgements_.front().group, acknowledgements_.front().ticket);
  acknowledgements_.pop_front();
  return true;
}

void SyncEngine::collect_outputs() {
  for (RequestOutput& output : scheduler_->take_outputs()) {
    const auto found = results_.find(output.id);
    require(found != results_.end(), "an output for unknown request " + output.id);
    Collected& collected = found->second;
    require(collected.reason == FinishReason::none, "an output after the last one of request " + output.id);
    require(output.error.code != ErrorCode::internal, "request " + output.id + ": " + output.error.message);
    require((output.reason == FinishReason::failed) == (output.error.code != ErrorCode::none),
            "an error without a failure, or the other way round");
    collected.tokens.insert(collected.tokens.end(), output.token_ids.begin(), output.token_ids.end());
    collected.logprobs.insert(collected.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    collected.reason = output.reason;
    collected.error = std::move(output.error);
    collected.prompt_tokens = output.prompt_tokens;
    collected.cached_tokens = output.cached_tokens;
    ++collected.num_outputs;
  }
}

void SyncEngine::clear_results() {
  std::erase_if(results_, [](const auto& entry) { return entry.second.reason != FinishReason::none; });
}

std::int64_t SyncEngine::blocks_promised() const {
  std::int64_t promised = 0;
  for (std::size_t group = 0; group < orders_.size(); ++group) {
    for (const Orders& orders : orders_[group]) {
      for (const GroupOrders::Extension& extension : orders.orders.extensions) {
        promised += extension.num_blocks;
      }
    }
  }
  return promised;
}

void SyncEngine::check_invariants() {
  require(scheduler_->check_invariants());
  // Blocks that were adopted but whose orders were not executed yet are held by the orders.
  std::vector<std::span<const BlockId>> tables;
  bool forks_on_their_way = false;
  for (std::size_t group = 0; group < orders_.size(); ++group) {
    for (const auto& [request, table] : allocators_[group]->block_tables()) {
      tables.emplace_back(table);
    }
    for (const Orders& orders : orders_[group]) {
      for (const GroupOrders::Adoption& adoption : orders.orders.adoptions) {
        tables.emplace_back(adoption.blocks);
      }
      forks_on_their_way = forks_on_their_way || !orders.orders.forks.empty();
    }
  }
  require(manager_.check_invariants(tables));
  const BlockCounts counts = manager_.counts();
  require(counts.in_use + counts.initialized + counts.uninitialized == manager_.num_blocks(),
          "blocks in the three states do not add up");
  // How many blocks a fork takes is the allocators' affair, but they must not be fewer than what extensions take.
  const std::int64_t promised = blocks_promised();
  require(forks_on_their_way ? counts.reserved >= promised : counts.reserved == promised,
          std::to_string(counts.reserved) + " blocks are reserved for orders that take " + std::to_string(promised));
}

void SyncEngine::check_idle() {
  check_invariants();
  const EngineStatistics counted = statistics();
  require(!scheduler_->has_pending() && counted.running_requests == 0 && counted.waiting_requests == 0,
          std::to_string(counted.running_requests) + " requests run and " + std::to_string(counted.waiting_requests) +
              " wait, but nothing is to do");
  const BlockCounts counts = manager_.counts();
  require(counts.in_use == 0 && counts.reserved == 0, std::to_string(counts.in_use) + " blocks are in use and " +
                                                          std::to_string(counts.reserved) +
                                                          " reserved, but nothing is to do");
  require(counted.accepted_requests == counted.finished_requests + counted.cancelled_requests + counted.failed_requests,
          "accepted requests and ends differ");
  for (const auto& [id, collected] : results_) {
    require(collected.reason != FinishReason::none, "request " + id + " never got its last output");
  }
}

EngineStatistics SyncEngine::statistics() const {
  EngineStatistics statistics;
  statistics.blocks = manager_.counts();
  statistics.num_blocks = manager_.num_blocks();
  statistics.block_size = manager_.block_size();
  scheduler_->add_statistics(statistics);
  return statistics;
}

std::vector<TokenId> expected_tokens(const Request& request, const ModelDescription& model, std::int32_t longest) {
  const auto prompt_length = static_cast<std::int32_t>(request.prompt_ids.size());
  const std::int32_t limit = request.max_new_tokens.value_or(longest - prompt_length);
  std::vector<TokenId> tokens = simulated_generate(request.prompt_ids, request.sampling, limit, model.vocab_size);
  if (!request.ignore_eos) {
    const std::vector<TokenId>& ends = request.eos_token_ids ? *request.eos_token_ids : model.eos_token_ids;
    const auto end = std::ranges::find_first_of(tokens, ends);
    tokens.erase(end == tokens.end() ? end : end + 1, tokens.end());
  }
  return tokens;
}

}  // namespace troupe::test
