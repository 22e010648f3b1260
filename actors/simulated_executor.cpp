#include "actors/simulated_executor.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace troupe {
namespace {

constexpr std::uint64_t kEmptyChain = 0x9E3779B97F4A7C15U;
/// Results that rows of later steps may ask for; a pipeline is two steps deep.
constexpr std::size_t kRememberedSteps = 4;

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

/// Hash of a sequence that is one token longer.
std::uint64_t extend_chain(std::uint64_t chain, TokenId token) {
  return mix(chain + static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1);
}

/// Token at `position` of a sequence whose tokens before it hash to `chain`.
TokenId sample(std::uint64_t chain, std::int32_t position, const SamplingParams& sampling, std::int32_t vocab_size) {
  const std::uint64_t hash =
      mix(chain ^ mix(sampling.seed + 1) ^ mix(static_cast<std::uint64_t>(position) + (std::uint64_t{1} << 32U)));
  return static_cast<TokenId>(hash % static_cast<std::uint64_t>(vocab_size));
}

Error internal(const StepRow& row, const std::string& what) {
  return Error{ErrorCode::internal, "request " + std::to_string(row.request) + " with " +
                                        std::to_string(row.past_length) + " cached and " +
                                        std::to_string(row.query_length) + " query tokens: " + what};
}

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<void> SimulatedExecutor::allocate_cache(const CacheShape& shape) {
  if (shape.num_blocks < 1 || shape.block_size < 1 || shape.groups.empty()) {
    return fail(ErrorCode::invalid_request, "a cache of " + std::to_string(shape.num_blocks) + " blocks of " +
                                                std::to_string(shape.block_size) + " slots in " +
                                                std::to_string(shape.groups.size()) + " groups holds nothing");
  }
  shape_ = shape;
  slots_.assign(shape.groups.size(), std::vector<Slot>(static_cast<std::size_t>(shape.num_blocks) *
                                                       static_cast<std::size_t>(shape.block_size)));
  sampled_.clear();
  return {};
}

StepResult SimulatedExecutor::execute(const StepPlan& plan, std::span<const GroupInputs> groups) {
  using Kind = SimulatedFault::Kind;
  const std::optional<SimulatedFault> fault = options_.fault ? options_.fault(plan) : std::nullopt;
  const auto has = [&fault](Kind kind) { return fault && fault->kind == kind; };
  if (has(Kind::throw_exception)) {
    throw std::bad_alloc();
  }
  StepResult result;
  result.step = plan.step;
  result.started_ns = options_.real_time ? steady_now_ns() : now_ns_;
  if (Result<void> checked = check_shape(plan, groups); !checked) {
    result.error = std::move(checked.error());
  } else if (has(Kind::fail)) {
    result.error = {ErrorCode::step_failed, "simulated failure of step " + std::to_string(plan.step)};
  } else {
    run_rows(plan, groups, result);
  }
  if (has(Kind::fail_late) && result.error.code == ErrorCode::none) {
    result.error = {ErrorCode::step_failed, "simulated late failure of step " + std::to_string(plan.step)};
  }
  if (has(Kind::nan_row) && std::cmp_less(fault->row, plan.rows.size())) {
    result.token_ids[static_cast<std::size_t>(fault->row)] = -1;
    result.row_errors.emplace_back(
        fault->row, Error{ErrorCode::step_failed, "simulated NaN logits in row " + std::to_string(fault->row)});
  }
  spend_time(plan, has(Kind::delay) ? fault->delay_ns : 0, result);
  if (result.error.code == ErrorCode::none) {
    sampled_.emplace_back(plan.step, result.token_ids);
    if (sampled_.size() > kRememberedSteps) {
      sampled_.pop_front();
    }
  }
  if (has(Kind::too_few_tokens) && !result.token_ids.empty()) {
    result.token_ids.pop_back();
  }
  return result;
}

void SimulatedExecutor::run_rows(const StepPlan& plan, std::span<const GroupInputs> groups, StepResult& result) {
  for (const GroupInputs& inputs : groups) {
    if (Result<void> copied = copy_blocks(inputs); !copied) {
      result.error = std::move(copied.error());
      return;
    }
  }
  const bool wants_logprobs =
      std::ranges::any_of(plan.rows, [](const StepRow& row) { return row.samples && row.sampling.return_logprobs; });
  result.token_ids.assign(plan.rows.size(), -1);
  result.logprobs.assign(wants_logprobs ? plan.rows.size() : 0, 0.0F);
  for (std::size_t index = 0; index < plan.rows.size(); ++index) {
    const StepRow& row = plan.rows[index];
    const Result<std::uint64_t> chain = run_row(plan, row, index, groups);
    if (!chain) {
      result.row_errors.emplace_back(static_cast<std::int32_t>(index), chain.error());
      continue;
    }
    if (row.samples) {
      const std::int32_t position = row.past_length + row.query_length;
      result.token_ids[index] = sample(*chain, position, row.sampling, options_.vocab_size);
      if (row.sampling.return_logprobs) {
        result.logprobs[index] = simulated_logprob(result.token_ids[index], position);
      }
    }
  }
}

Result<void> SimulatedExecutor::check_shape(const StepPlan& plan, std::span<const GroupInputs> groups) const {
  const auto broken = [&plan](const std::string& what) {
    return fail(ErrorCode::internal, "step " + std::to_string(plan.step) + ": " + what);
  };
  if (groups.size() != slots_.size()) {
    return broken(std::to_string(groups.size()) + " group inputs for " + std::to_string(slots_.size()) + " groups");
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const GroupInputs& inputs = groups[group];
    if (inputs.step != plan.step || std::cmp_not_equal(inputs.group, group)) {
      return broken("inputs of group " + std::to_string(inputs.group) + " and step " + std::to_string(inputs.step) +
                    " at the place of group " + std::to_string(group));
    }
    const auto& offsets = inputs.block_table_offsets;
    if (offsets.size() != plan.rows.size() + 1 || offsets.front() != 0 || !std::ranges::is_sorted(offsets) ||
        std::cmp_not_equal(offsets.back(), inputs.block_table.size()) ||
        inputs.slot_mapping.size() != plan.token_ids.size()) {
      return broken("the block table or the slot mapping of group " + std::to_string(group) +
                    " has the wrong length for its rows");
    }
  }
  std::int64_t next_token = 0;
  for (const StepRow& row : plan.rows) {
    if (row.query_length < 1 || row.past_length < 0 || row.query_start != next_token) {
      return broken("a row has no query tokens, or they are not packed row after row");
    }
    next_token += row.query_length;
  }
  if (plan.rows.empty() || std::cmp_not_equal(next_token, plan.token_ids.size())) {
    return broken(std::to_string(next_token) + " query tokens in rows, but " + std::to_string(plan.token_ids.size()) +
                  " token ids");
  }
  return {};
}

Result<void> SimulatedExecutor::copy_blocks(const GroupInputs& inputs) {
  std::vector<Slot>& slots = slots_[static_cast<std::size_t>(inputs.group)];
  for (const BlockCopy& copy : inputs.copies) {
    const auto is_block = [this](BlockId id) { return id >= 0 && id < shape_.num_blocks; };
    if (!is_block(copy.source) || !is_block(copy.destination)) {
      return fail(ErrorCode::internal, "a copy from block " + std::to_string(copy.source) + " to block " +
                                           std::to_string(copy.destination) + " of " +
                                           std::to_string(shape_.num_blocks));
    }
    std::copy_n(slots.begin() + std::ptrdiff_t{copy.source} * shape_.block_size, shape_.block_size,
                slots.begin() + std::ptrdiff_t{copy.destination} * shape_.block_size);
  }
  return {};
}

Result<std::vector<TokenId>> SimulatedExecutor::resolve_tokens(const StepPlan& plan, const StepRow& row) const {
  const auto first = plan.token_ids.begin() + row.query_start;
  std::vector<TokenId> tokens(first, first + row.query_length);
  if (row.input_row >= 0) {
    const auto source = std::ranges::find(sampled_, row.input_step, [](const auto& entry) { return entry.first; });
    if (row.query_length != 1 || tokens.front() != -1 || source == sampled_.end() ||
        std::cmp_greater_equal(row.input_row, source->second.size())) {
      return tl::unexpected<Error>(internal(row, "row " + std::to_string(row.input_row) + " of step " +
                                                     std::to_string(row.input_step) + " has no token for it"));
    }
    tokens.front() = source->second[static_cast<std::size_t>(row.input_row)];
  }
  const bool are_tokens =
      std::ranges::all_of(tokens, [this](TokenId token) { return token >= 0 && token < options_.vocab_size; });
  if (!are_tokens) {
    return tl::unexpected<Error>(internal(row, "a query token is outside the vocabulary"));
  }
  return tokens;
}

Result<std::uint64_t> SimulatedExecutor::run_row(const StepPlan& plan, const StepRow& row, std::size_t index,
                                                 std::span<const GroupInputs> groups) {
  const Result<std::vector<TokenId>> tokens = resolve_tokens(plan, row);
  if (!tokens) {
    return tl::unexpected<Error>(tokens.error());
  }
  std::vector<std::uint64_t> chains;
  for (const GroupInputs& inputs : groups) {
    const auto first_block = static_cast<std::size_t>(inputs.block_table_offsets[index]);
    const auto last_block = static_cast<std::size_t>(inputs.block_table_offsets[index + 1]);
    const RowView view{
        .group = inputs.group,
        .table = std::span(inputs.block_table).subspan(first_block, last_block - first_block),
        .slots = std::span(inputs.slot_mapping)
                     .subspan(static_cast<std::size_t>(row.query_start), static_cast<std::size_t>(row.query_length))};
    // A ring's slots are read before the row's own tokens overwrite them.
    const Result<std::uint64_t> chain = read_past(view, row.past_length);
    if (!chain) {
      return tl::unexpected<Error>(internal(row, chain.error().message));
    }
    std::vector<std::uint64_t> group_chains{*chain};
    for (const TokenId token : *tokens) {
      group_chains.push_back(extend_chain(group_chains.back(), token));
    }
    if (!chains.empty() && chains != group_chains) {
      return tl::unexpected<Error>(
          internal(row, "group " + std::to_string(inputs.group) + " holds another sequence than group 0"));
    }
    chains = std::move(group_chains);
    if (Result<void> written = write(view, row, chains); !written) {
      return tl::unexpected<Error>(internal(row, written.error().message));
    }
  }
  return chains.back();
}

Result<std::uint64_t> SimulatedExecutor::read_past(const RowView& view, std::int32_t past_length) const {
  if (past_length == 0) {
    return kEmptyChain;
  }
  const LayerGroup& group = shape_.groups[static_cast<std::size_t>(view.group)];
  const bool is_sliding = group.type == AttentionType::sliding;
  // A window of one position holds only the query itself, but the simulation needs the token before it all the same.
  const std::int32_t window = is_sliding ? std::max(group.sliding_window - 1, 1) : past_length;
  const std::int32_t first_visible = std::max(past_length - window, 0);
  const std::int32_t first = options_.verify ? first_visible : past_length - 1;
  std::uint64_t chain = 0;
  for (std::int32_t position = first; position < past_length; ++position) {
    const Result<std::int32_t> slot = slot_of(view, position);
    if (!slot) {
      return tl::unexpected<Error>(slot.error());
    }
    const Slot& found = slot_at(view.group, *slot);
    if (found.position != position) {
      return fail(ErrorCode::internal, "slot " + std::to_string(*slot) + " of group " + std::to_string(view.group) +
                                           " should hold position " + std::to_string(position) + ", but holds " +
                                           std::to_string(found.position));
    }
    const bool follows = position == 0 ? found.parent == kEmptyChain : position == first || found.parent == chain;
    if (!follows) {
      return fail(ErrorCode::internal, "slot " + std::to_string(*slot) + " of group " + std::to_string(view.group) +
                                           " holds position " + std::to_string(position) + " of another sequence");
    }
    chain = found.chain;
  }
  return chain;
}

Result<void> SimulatedExecutor::write(const RowView& view, const StepRow& row, std::span<const std::uint64_t> chains) {
  const LayerGroup& group = shape_.groups[static_cast<std::size_t>(view.group)];
  const bool is_sliding = group.type == AttentionType::sliding;
  for (std::int32_t i = 0; i < row.query_length; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::int32_t position = row.past_length + i;
    const bool survives = !is_sliding || row.query_length - i <= group.sliding_window;
    Result<std::int32_t> expected = -1;
    if (survives) {
      expected = slot_of(view, position);
    }
    if (!expected) {
      return tl::unexpected<Error>(expected.error());
    }
    if (view.slots[index] != *expected) {
      return fail(ErrorCode::internal, "position " + std::to_string(position) + " should be written to slot " +
                                           std::to_string(*expected) + " of group " + std::to_string(view.group) +
                                           ", but the slot mapping says " + std::to_string(view.slots[index]));
    }
    if (survives) {
      slot_at(view.group, *expected) = Slot{.position = position, .parent = chains[index], .chain = chains[index + 1]};
    }
  }
  return {};
}

Result<std::int32_t> SimulatedExecutor::slot_of(const RowView& view, std::int32_t position) const {
  const LayerGroup& group = shape_.groups[static_cast<std::size_t>(view.group)];
  const std::int32_t place = group.type == AttentionType::sliding ? position % group.sliding_window : position;
  const auto block = static_cast<std::size_t>(place / shape_.block_size);
  if (block >= view.table.size() || view.table[block] < 0 || view.table[block] >= shape_.num_blocks) {
    return fail(ErrorCode::internal, "the block table of group " + std::to_string(view.group) + " has no block for " +
                                         "position " + std::to_string(position));
  }
  return view.table[block] * shape_.block_size + place % shape_.block_size;
}

SimulatedExecutor::Slot& SimulatedExecutor::slot_at(GroupId group, std::int32_t slot) {
  return slots_[static_cast<std::size_t>(group)][static_cast<std::size_t>(slot)];
}

const SimulatedExecutor::Slot& SimulatedExecutor::slot_at(GroupId group, std::int32_t slot) const {
  return slots_[static_cast<std::size_t>(group)][static_cast<std::size_t>(slot)];
}

void SimulatedExecutor::spend_time(const StepPlan& plan, std::int64_t delay_ns, StepResult& result) {
  const std::int64_t duration_ns =
      options_.step_ns + options_.token_ns * static_cast<std::int64_t>(plan.token_ids.size()) + delay_ns;
  if (!options_.real_time) {
    now_ns_ += duration_ns;
    result.ended_ns = now_ns_;
    return;
  }
  std::this_thread::sleep_until(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(result.started_ns + duration_ns)));
  result.ended_ns = steady_now_ns();
}

std::vector<TokenId> simulated_generate(std::span<const TokenId> prompt, const SamplingParams& sampling,
                                        std::int32_t num_tokens, std::int32_t vocab_size) {
  std::uint64_t chain = kEmptyChain;
  for (const TokenId token : prompt) {
    chain = extend_chain(chain, token);
  }
  std::vector<TokenId> tokens;
  auto position = static_cast<std::int32_t>(prompt.size());
  for (std::int32_t i = 0; i < num_tokens; ++i, ++position) {
    tokens.push_back(sample(chain, position, sampling, vocab_size));
    chain = extend_chain(chain, tokens.back());
  }
  return tokens;
}

float simulated_logprob(TokenId token, std::int32_t position) {
  constexpr std::int32_t kSteps = 997;
  return -static_cast<float>((std::int64_t{token} * 31 + position) % kSteps) / static_cast<float>(kSteps);
}

}  // namespace troupe
