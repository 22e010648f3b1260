#pragma once

/// How the plain types of requests, outputs and statistics cross to another process. CAF 0.17 cannot serialize floats
/// (an infinity makes it loop for ever), so they travel as bit patterns, and it does not know std::optional.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>

#include "actors/request.hpp"
#include "actors/statistics.hpp"

namespace troupe {

namespace detail {

/// An optional as CAF can write it: whether it is there, and its value or a default.
template <class T>
[[nodiscard]] std::pair<bool, T> to_wire(const std::optional<T>& value) {
  return {value.has_value(), value.value_or(T{})};
}

template <class T>
[[nodiscard]] std::optional<T> from_wire(std::pair<bool, T> value) {
  return value.first ? std::optional<T>(std::move(value.second)) : std::nullopt;
}

[[nodiscard]] inline std::vector<std::uint32_t> to_wire(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(),
                 [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return bits;
}

[[nodiscard]] inline std::vector<float> from_wire(const std::vector<std::uint32_t>& bits) {
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [](std::uint32_t pattern) { return std::bit_cast<float>(pattern); });
  return values;
}

}  // namespace detail

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Error& x) {
  return f(caf::meta::type_name("Error"), x.code, x.message);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SamplingParams& x) {
  auto temperature = std::bit_cast<std::uint32_t>(x.temperature);
  auto top_p = std::bit_cast<std::uint32_t>(x.top_p);
  auto min_p = std::bit_cast<std::uint32_t>(x.min_p);
  auto load = [&]() -> caf::error {
    x.temperature = std::bit_cast<float>(temperature);
    x.top_p = std::bit_cast<float>(top_p);
    x.min_p = std::bit_cast<float>(min_p);
    return caf::none;
  };
  return f(caf::meta::type_name("SamplingParams"), temperature, x.top_k, top_p, min_p, x.seed, x.return_logprobs,
           caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Request& x) {
  auto max_new_tokens = detail::to_wire(x.max_new_tokens);
  auto eos_token_ids = detail::to_wire(x.eos_token_ids);
  auto load = [&]() -> caf::error {
    x.max_new_tokens = detail::from_wire(std::move(max_new_tokens));
    x.eos_token_ids = detail::from_wire(std::move(eos_token_ids));
    return caf::none;
  };
  return f(caf::meta::type_name("Request"), x.id, x.prompt_ids, max_new_tokens, eos_token_ids, x.ignore_eos, x.sampling,
           x.streaming, x.prefix_sharing, caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RequestOutput& x) {
  auto logprobs = detail::to_wire(x.logprobs);
  auto load = [&]() -> caf::error {
    x.logprobs = detail::from_wire(logprobs);
    return caf::none;
  };
  return f(caf::meta::type_name("RequestOutput"), x.id, x.token_ids, logprobs, x.reason, x.error, x.prompt_tokens,
           x.cached_tokens, caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ForkOverrides& x) {
  auto sampling = detail::to_wire(x.sampling);
  auto max_new_tokens = detail::to_wire(x.max_new_tokens);
  auto load = [&]() -> caf::error {
    x.sampling = detail::from_wire(std::move(sampling));
    x.max_new_tokens = detail::from_wire(std::move(max_new_tokens));
    return caf::none;
  };
  return f(caf::meta::type_name("ForkOverrides"), sampling, max_new_tokens, caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, BlockCounts& x) {
  return f(caf::meta::type_name("BlockCounts"), x.in_use, x.initialized, x.uninitialized, x.reserved, x.in_use_by_group,
           x.initialized_by_group);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EngineStatistics& x) {
  return f(caf::meta::type_name("EngineStatistics"), x.blocks, x.num_blocks, x.block_size, x.running_requests,
           x.waiting_requests, x.accepted_requests, x.refused_requests, x.finished_requests, x.cancelled_requests,
           x.failed_requests, x.preemptions, x.steps, x.forward_tokens, x.generated_tokens, x.cached_tokens,
           x.idle_gap_total_ns, x.idle_gap_max_ns, x.idle_gap_count, x.step_time_total_ns);
}

}  // namespace troupe
