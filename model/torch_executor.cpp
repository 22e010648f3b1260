#include "model/torch_executor.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <c10/core/InferenceMode.h>
#include <omp.h>

#include "model/torch_error.hpp"

namespace troupe {

namespace {

/// More than can be in flight.
constexpr std::size_t kMaxPastSteps = 8;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TorchExecutor::TorchExecutor(std::unique_ptr<Decoder> decoder, ModelDescription model, std::int32_t num_threads)
    : decoder_(std::move(decoder)),
      model_(std::move(model)),
      num_threads_(num_threads),
      samplers_(static_cast<std::size_t>(num_threads)),
      scratch_(static_cast<std::size_t>(num_threads)) {}

Result<void> TorchExecutor::allocate_cache(const CacheShape& shape) {
  if (shape.num_blocks < 1 || shape.block_size < 1 || shape.groups.empty() || shape.groups.front().layers.empty()) {
    return fail(ErrorCode::invalid_request, "a cache of " + std::to_string(shape.num_blocks) + " blocks of " +
                                                std::to_string(shape.block_size) + " slots in " +
                                                std::to_string(shape.groups.size()) + " layer groups");
  }
  try {
    const c10::InferenceMode guard;
    decoder_->allocate_cache(shape);
  } catch (const std::exception& error) {
    return fail(ErrorCode::out_of_blocks, "the cache of " + std::to_string(shape.num_blocks) +
                                              " blocks cannot be allocated: " + describe_exception(error));
  }
  shape_ = shape;
  return {};
}

StepResult TorchExecutor::execute(const StepPlan& plan, std::span<const GroupInputs> groups) {
  StepResult result;
  result.step = plan.step;
  result.started_ns = now_ns();
  result.token_ids.assign(plan.rows.size(), -1);
  Result<void> done;
  try {
    const c10::InferenceMode guard;
    done = run(plan, groups, result);
  } catch (const std::exception& error) {
    done = fail(ErrorCode::step_failed, "step " + std::to_string(plan.step) + ": " + describe_exception(error));
  }
  if (!done) {
    result.error = std::move(done.error());
    std::ranges::fill(result.token_ids, -1);
  }
  past_steps_.push_back({plan.step, result.token_ids});
  if (past_steps_.size() > kMaxPastSteps) {
    past_steps_.pop_front();
  }
  result.ended_ns = now_ns();
  return result;
}

Result<void> TorchExecutor::run(const StepPlan& plan, std::span<const GroupInputs> groups, StepResult& result) {
  if (Result<void> checked = check_step(plan, groups, shape_, model_.vocab_size); !checked) {
    return checked;
  }
  for (const GroupInputs& inputs : groups) {
    decoder_->copy_blocks(inputs.copies);
  }
  std::vector<TokenId> token_ids = plan.token_ids;
  resolve_inputs(plan, token_ids, result);
  std::vector<std::int32_t> positions;
  positions.reserve(token_ids.size());
  std::vector<std::int32_t> sampled_rows;
  std::vector<std::int32_t> sampled_tokens;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    for (std::int32_t token = 0; token < row.query_length; ++token) {
      positions.push_back(row.past_length + token);
    }
    if (row.samples) {
      sampled_rows.push_back(static_cast<std::int32_t>(i));
      sampled_tokens.push_back(row.query_start + row.query_length - 1);
    }
  }
  Result<std::unique_ptr<Logits>> logits = decoder_->forward(DecoderStep{.rows = plan.rows,
                                                                         .token_ids = token_ids,
                                                                         .positions = positions,
                                                                         .groups = groups,
                                                                         .sampled_tokens = sampled_tokens});
  if (!logits) {
    return tl::unexpected(std::move(logits.error()));
  }
  return sample(plan, **logits, sampled_rows, result);
}

void TorchExecutor::resolve_inputs(const StepPlan& plan, std::vector<TokenId>& token_ids, StepResult& result) const {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    TokenId& token = token_ids[static_cast<std::size_t>(row.query_start)];
    if (row.input_row < 0 || token >= 0) {
      continue;
    }
    const auto source = std::ranges::find(past_steps_, row.input_step, &PastStep::step);
    const auto source_row = static_cast<std::size_t>(row.input_row);
    if (source != past_steps_.end() && source_row < source->token_ids.size()) {
      token = source->token_ids[source_row];
    }
    if (token < 0) {
      // The row is computed with any token, for its neighbours' sake; nobody gets the result.
      token = 0;
      result.row_errors.emplace_back(
          static_cast<std::int32_t>(i),
          Error{ErrorCode::step_failed, "row " + std::to_string(row.input_row) + " of step " +
                                            std::to_string(row.input_step) + ", which it continues, sampled nothing"});
    }
  }
}

Result<void> TorchExecutor::sample(const StepPlan& plan, const Logits& logits,
                                   std::span<const std::int32_t> sampled_rows, StepResult& result) {
  const auto num_rows = static_cast<std::int64_t>(sampled_rows.size());
  std::vector<Result<SampledToken>> sampled(sampled_rows.size());
#pragma omp parallel for schedule(dynamic, 1) num_threads(num_threads_) if (num_rows > 1)
  for (std::int64_t i = 0; i < num_rows; ++i) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto index = static_cast<std::size_t>(i);
    const StepRow& row = plan.rows[static_cast<std::size_t>(sampled_rows[index])];
    sampled[index] = samplers_[thread].sample(logits.row(index, scratch_[thread]), row.sampling,
                                              std::int64_t{row.past_length} + row.query_length);
  }
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const std::int32_t row = sampled_rows[i];
    const bool failed_before =
        std::ranges::any_of(result.row_errors, [row](const auto& row_error) { return row_error.first == row; });
    if (failed_before) {
      continue;
    }
    if (!sampled[i]) {
      result.row_errors.emplace_back(row, std::move(sampled[i].error()));
      continue;
    }
    result.token_ids[static_cast<std::size_t>(row)] = sampled[i]->token;
    if (plan.rows[static_cast<std::size_t>(row)].sampling.return_logprobs) {
      result.logprobs.resize(plan.rows.size(), 0.0F);
      result.logprobs[static_cast<std::size_t>(row)] = sampled[i]->logprob;
    }
  }
  return {};
}

}  // namespace troupe
