#include <algorithm>
#include <cstdint>
#include <string>

#include "model/torch_executor.hpp"

namespace troupe {

namespace {

tl::unexpected<Error> bad_row(const StepPlan& plan, std::size_t row, const std::string& problem) {
  return fail(ErrorCode::internal,
              "step " + std::to_string(plan.step) + ", row " + std::to_string(row) + ": " + problem);
}

Result<void> check_rows(const StepPlan& plan, std::int32_t vocab_size) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    if (row.query_length < 1 || row.past_length < 0 || row.query_start != next) {
      return bad_row(plan, i,
                     "past_length " + std::to_string(row.past_length) + ", query_length " +
                         std::to_string(row.query_length) + ", query_start " + std::to_string(row.query_start) +
                         ", expected query_start " + std::to_string(next));
    }
    next += row.query_length;
    if (next > static_cast<std::int64_t>(plan.token_ids.size())) {
      break;
    }
    for (std::int64_t token = row.query_start; token < next; ++token) {
      const TokenId id = plan.token_ids[static_cast<std::size_t>(token)];
      const bool promised = id == -1 && row.input_row >= 0 && row.query_length == 1 && row.input_step < plan.step;
      if (!promised && (id < 0 || id >= vocab_size)) {
        return bad_row(plan, i,
                       "token " + std::to_string(id) + ", expected one in [0, " + std::to_string(vocab_size) + ")");
      }
    }
  }
  if (next != static_cast<std::int64_t>(plan.token_ids.size())) {
    return fail(ErrorCode::internal, "step " + std::to_string(plan.step) + ": rows of " + std::to_string(next) +
                                         " query tokens, found " + std::to_string(plan.token_ids.size()));
  }
  return {};
}

Result<void> check_group(const StepPlan& plan, const GroupInputs& inputs, const CacheShape& shape,
                         const LayerGroup& group) {
  if (inputs.step != plan.step || inputs.block_table_offsets.size() != plan.rows.size() + 1 ||
      inputs.slot_mapping.size() != plan.token_ids.size()) {
    return fail(ErrorCode::internal, "step " + std::to_string(plan.step) + ": the inputs of group " +
                                         std::to_string(inputs.group) + " are of step " + std::to_string(inputs.step) +
                                         " or do not match its " + std::to_string(plan.rows.size()) + " rows");
  }
  const auto is_block = [&shape](BlockId id) { return id >= 0 && id < shape.num_blocks; };
  const auto copies_blocks = [&](const BlockCopy& copy) { return is_block(copy.source) && is_block(copy.destination); };
  const std::int64_t num_slots = std::int64_t{shape.num_blocks} * shape.block_size;
  const auto is_slot = [num_slots](std::int32_t slot) { return slot >= -1 && slot < num_slots; };
  if (!std::ranges::all_of(inputs.block_table, is_block) || !std::ranges::all_of(inputs.copies, copies_blocks) ||
      !std::ranges::all_of(inputs.slot_mapping, is_slot)) {
    return fail(ErrorCode::internal, "step " + std::to_string(plan.step) + ": group " + std::to_string(inputs.group) +
                                         " names a block outside of " + std::to_string(shape.num_blocks));
  }
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const std::int64_t begin = inputs.block_table_offsets[i];
    const std::int64_t end = inputs.block_table_offsets[i + 1];
    std::int64_t slots_needed = std::int64_t{plan.rows[i].past_length} + plan.rows[i].query_length;
    if (group.type == AttentionType::sliding) {
      slots_needed = std::min<std::int64_t>(slots_needed, group.sliding_window);
    }
    if (begin < 0 || end < begin || end > static_cast<std::int64_t>(inputs.block_table.size()) ||
        (end - begin) * shape.block_size < slots_needed) {
      return bad_row(plan, i,
                     std::to_string(end - begin) + " blocks of " + std::to_string(shape.block_size) +
                         " slots, expected room for " + std::to_string(slots_needed) + " tokens");
    }
  }
  return {};
}

}  // namespace

Result<void> check_step(const StepPlan& plan, std::span<const GroupInputs> groups, const CacheShape& shape,
                        std::int32_t vocab_size) {
  if (groups.size() != shape.groups.size()) {
    return fail(ErrorCode::internal, "step " + std::to_string(plan.step) + ": inputs of " +
                                         std::to_string(groups.size()) + " layer groups, expected " +
                                         std::to_string(shape.groups.size()));
  }
  if (Result<void> checked = check_rows(plan, vocab_size); !checked) {
    return checked;
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (Result<void> checked = check_group(plan, groups[group], shape, shape.groups[group]); !checked) {
      return checked;
    }
  }
  return {};
}

}  // namespace troupe
