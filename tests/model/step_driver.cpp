#include "tests/model/step_driver.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cache/layer_groups.hpp"

namespace troupe::test {

namespace {

template <class T>
T unwrap(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

/// A request under way.
struct Run {
  DrivenRequest* request = nullptr;
  std::int32_t cached = 0;
  /// Tokens sampled or about to be.
  std::int32_t promised = 0;
  StepId last_step = 0;
  std::int32_t last_row = -1;

  [[nodiscard]] std::int32_t prompt_length() const { return static_cast<std::int32_t>(request->prompt.size()); }
  [[nodiscard]] bool failed() const { return !request->error.empty(); }
  /// Tokens to be fed; 0 once the last one wanted is promised.
  [[nodiscard]] std::int32_t remaining() const {
    return failed() || promised >= request->max_new_tokens ? 0 : prompt_length() + promised - cached;
  }
};

class Driver {
 public:
  Driver(StepExecutor& executor, const ModelDescription& model, const DriverOptions& options,
         std::vector<DrivenRequest>& requests)
      : executor_(executor),
        options_(options),
        groups_(unwrap(make_layer_groups(model.layer_types, model.sliding_window))),
        cache_({.num_blocks = options.num_blocks, .block_size = options.block_size}, groups_, false) {
    for (DrivenRequest& request : requests) {
      runs_.push_back({.request = &request});
    }
    unwrap(executor.allocate_cache({.num_blocks = options.num_blocks,
                                    .block_size = options.block_size,
                                    .groups = groups_,
                                    .poison_unwritten = options.poison_unwritten}));
  }

  void run() {
    std::optional<Planned> waiting;
    while (true) {
      std::optional<Planned> planned = plan();
      if (waiting) {
        settle(*std::exchange(waiting, std::nullopt));
      }
      if (!planned) {
        if (std::ranges::all_of(runs_, [](const Run& run) { return run.remaining() == 0; })) {
          return;
        }
        continue;
      }
      if (options_.ahead) {
        waiting = std::move(planned);
      } else {
        settle(*planned);
      }
    }
  }

 private:
  struct Planned {
    StepPlan plan;
    std::vector<GroupInputs> groups;
    std::vector<std::size_t> runs;
  };

  std::optional<Planned> plan() {
    Planned planned;
    planned.plan.step = ++last_step_;
    std::int32_t budget = options_.max_batch_tokens;
    for (const bool decoding : {true, false}) {
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        const std::int32_t remaining = runs_[i].remaining();
        if (budget > 0 && remaining > 0 && (runs_[i].promised > 0) == decoding) {
          const std::int32_t length = std::min(remaining, budget);
          budget -= length;
          add_row(planned, i, length);
        }
      }
    }
    if (planned.plan.rows.empty()) {
      return std::nullopt;
    }
    add_groups(planned);
    return planned;
  }

  void add_row(Planned& planned, std::size_t index, std::int32_t length) {
    Run& run = runs_[index];
    StepRow row{.request = index + 1,
                .past_length = run.cached,
                .query_length = length,
                .query_start = static_cast<std::int32_t>(planned.plan.token_ids.size()),
                .samples = length == run.remaining(),
                .sampling = run.request->sampling};
    for (std::int32_t position = run.cached; position < run.cached + length; ++position) {
      const auto generated = static_cast<std::size_t>(std::max(0, position - run.prompt_length()));
      if (position < run.prompt_length()) {
        planned.plan.token_ids.push_back(run.request->prompt[static_cast<std::size_t>(position)]);
      } else if (generated < run.request->tokens.size()) {
        planned.plan.token_ids.push_back(run.request->tokens[generated]);
      } else {
        planned.plan.token_ids.push_back(-1);
        row.input_row = run.last_row;
        row.input_step = run.last_step;
      }
    }
    run.cached += length;
    if (row.samples) {
      ++run.promised;
      run.last_step = planned.plan.step;
      run.last_row = static_cast<std::int32_t>(planned.plan.rows.size());
    }
    planned.runs.push_back(index);
    planned.plan.rows.push_back(row);
  }

  void add_groups(Planned& planned) {
    for (GroupId group = 0; group < cache_.num_groups(); ++group) {
      CacheAllocator& allocator = cache_.allocator(group);
      GroupInputs inputs{.step = planned.plan.step, .group = group, .block_table_offsets = {0}};
      for (const StepRow& row : planned.plan.rows) {
        const std::int32_t wanted = allocator.blocks_for_length(row.past_length + row.query_length);
        const auto held = static_cast<std::int32_t>(allocator.block_table(row.request).size());
        if (wanted > held && !allocator.allocate_blocks(row.request, wanted - held)) {
          throw std::runtime_error("the driver has no blocks left");
        }
        unwrap(allocator.append_step_inputs(row, inputs));
      }
      planned.groups.push_back(std::move(inputs));
    }
  }

  void settle(const Planned& planned) {
    const StepResult result = executor_.execute(planned.plan, planned.groups);
    if (result.error.code != ErrorCode::none || result.token_ids.size() != planned.plan.rows.size()) {
      throw std::runtime_error("step " + std::to_string(result.step) + " failed: " + result.error.message);
    }
    for (const auto& [row, error] : result.row_errors) {
      runs_[planned.runs[static_cast<std::size_t>(row)]].request->error = error.message;
    }
    for (std::size_t row = 0; row < planned.runs.size(); ++row) {
      DrivenRequest& request = *runs_[planned.runs[row]].request;
      if (planned.plan.rows[row].samples && request.error.empty()) {
        request.tokens.push_back(result.token_ids[row]);
        if (request.sampling.return_logprobs) {
          request.logprobs.push_back(result.logprobs.at(row));
        }
      }
    }
  }

  StepExecutor& executor_;
  const DriverOptions& options_;
  std::vector<LayerGroup> groups_;
  PagedAttentionCache cache_;
  std::vector<Run> runs_;
  StepId last_step_ = 0;
};

}  // namespace

void drive(StepExecutor& executor, const ModelDescription& model, const DriverOptions& options,
           std::vector<DrivenRequest>& requests) {
  Driver(executor, model, options, requests).run();
}

}  // namespace troupe::test
