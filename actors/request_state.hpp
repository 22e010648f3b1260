#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cache/block_hash.hpp"
#include "cache/step.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Where a request is in its life. Counterpart of `RequestStatus` of transformers; a request that has ended has no
/// state.
enum class RequestStatus : std::uint8_t {
  /// A child whose parent has not been forked yet.
  forking,
  /// Has no blocks: new, or preempted.
  waiting,
  /// Has blocks; tokens that are known are not in the cache yet.
  prefilling,
  /// Its last row sampled: one token, known or promised, is not in the cache yet.
  decoding,
};

/// What the scheduler knows of a request.
///
/// Lengths count from the start of the sequence:
/// `completed_blocks * block_size <= computed_length <= past_length < total_length() <= max_total_length`.
struct RequestState {
  RequestId number = 0;
  std::string id;

  // What the client asked.
  SamplingParams sampling;
  /// Ascending; empty if such tokens do not end the request.
  std::vector<TokenId> eos_token_ids;
  bool streaming = false;
  bool prefix_sharing = true;
  std::int32_t prompt_length = 0;
  /// The request ends when it has this many tokens, prompt included.
  std::int32_t max_total_length = 0;

  // What is known.
  RequestStatus status = RequestStatus::waiting;
  /// Prompt, then what was sampled.
  std::vector<TokenId> tokens;
  /// Of the sampled tokens, if asked for.
  std::vector<float> logprobs;
  /// Sampled tokens that the client has.
  std::size_t num_delivered = 0;
  std::int32_t cached_tokens = 0;
  /// Hashes of the whole blocks that a prefix search may find; always leaves a token to compute.
  std::vector<BlockHash> hashes;

  // What is planned.
  /// Order of first activation; 0 if there was none. Older requests come first whenever blocks are short.
  std::uint64_t age = 0;
  /// Tokens that are in the cache, or about to be by the steps in flight. 0 exactly if the request has no blocks.
  std::int32_t past_length = 0;
  /// The part of it whose steps have settled.
  std::int32_t computed_length = 0;
  /// Blocks that were ordered to be hashed.
  std::int32_t completed_blocks = 0;
  /// Tokens that the steps in flight will sample.
  std::int32_t promised_tokens = 0;
  /// Rows of steps in flight, and copies that make the request.
  std::int32_t rows_in_flight = 0;
  /// The last step with a row of this request, and which row.
  StepId last_step = 0;
  std::int32_t last_row = 0;
  /// The last step whose decision named this request.
  StepId drafted_step = 0;
  /// How often the request's blocks were released: rows of an earlier time sampled right, but their keys are gone.
  std::uint32_t cache_epoch = 0;
  /// What steps before this one say of the request is void, because one of them failed.
  StepId first_valid_step = 0;
  /// If not 0, a step with this request failed: it runs alone until this many tokens are computed.
  std::int32_t suspect_until = 0;

  // Forks. Both ends know each other until the fork happens.
  RequestState* parent = nullptr;
  std::vector<RequestState*> children;
  /// Number of the next child.
  std::uint64_t next_child = 0;

  [[nodiscard]] std::int32_t known_length() const { return static_cast<std::int32_t>(tokens.size()); }
  [[nodiscard]] std::int32_t total_length() const { return known_length() + promised_tokens; }
  [[nodiscard]] std::size_t num_generated() const { return tokens.size() - static_cast<std::size_t>(prompt_length); }
  [[nodiscard]] bool is_active() const {
    return status == RequestStatus::prefilling || status == RequestStatus::decoding;
  }
  [[nodiscard]] bool is_suspect() const { return suspect_until != 0; }
  [[nodiscard]] bool is_eos(TokenId token) const;
  /// Whether the pending children can be made now: all but the last token are in the cache, and no step is in flight.
  [[nodiscard]] bool is_at_fork_point() const;
  /// Tokens that the next step may compute if `past` are in the cache. A request with pending children stops before its
  /// last token until it is at the fork point, because they sample from there on.
  [[nodiscard]] std::int32_t tokens_to_plan(std::int32_t past) const;
  /// Key of the waiting queue: requests that ran before come first, oldest first; then the others as they arrived.
  [[nodiscard]] std::pair<bool, std::uint64_t> waiting_key() const;
};

}  // namespace troupe
