#include "model/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "model/philox.hpp"

namespace troupe {

namespace {

/// Returns the index of the largest logit, the first of equals.
Result<std::size_t> checked_argmax(std::span<const float> logits) {
  std::size_t best = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] <= largest) {
      continue;
    }
    if (std::isnan(logits[i])) {
      return fail(ErrorCode::step_failed, "the logit of token " + std::to_string(i) + " is NaN");
    }
    best = i;
    largest = logits[i];
  }
  if (!std::isfinite(largest)) {
    return fail(ErrorCode::step_failed, "the largest logit, of token " + std::to_string(best) + ", is " +
                                            std::to_string(largest) + ", expected a finite number");
  }
  return best;
}

float log_softmax_at(std::span<const float> logits, std::size_t largest) {
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(logit - logits[largest]);
  }
  return static_cast<float>(-std::log(sum));
}

}  // namespace

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                     std::int64_t position) {
  const auto argmax = checked_argmax(logits);
  if (!argmax) {
    return tl::unexpected(argmax.error());
  }
  const std::size_t best = *argmax;
  if (!(params.temperature >= kGreedyBelowTemperature)) {
    return SampledToken{.token = static_cast<TokenId>(best),
                        .logprob = params.return_logprobs ? log_softmax_at(logits, best) : 0.0F};
  }

  const float inverse_temperature = 1.0F / params.temperature;
  candidates_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {.weight = std::exp((logits[i] - logits[best]) * inverse_temperature),
                      .token = static_cast<TokenId>(i)};
  }
  apply_top_k(params.top_k);
  apply_top_p(params.top_p);
  apply_min_p(params.min_p);
  SampledToken sampled = draw(uniform_at(params.seed, static_cast<std::uint64_t>(position)));
  if (!params.return_logprobs) {
    sampled.logprob = 0.0F;
  }
  return sampled;
}

namespace {

constexpr auto kMoreLikely = [](const auto& a, const auto& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
};

}  // namespace

void Sampler::apply_top_k(std::int32_t top_k) {
  if (top_k <= 0 || static_cast<std::size_t>(top_k) >= candidates_.size()) {
    return;
  }
  std::nth_element(candidates_.begin(), candidates_.begin() + (top_k - 1), candidates_.end(), kMoreLikely);
  candidates_.resize(static_cast<std::size_t>(top_k));
}

void Sampler::apply_top_p(float top_p) {
  if (top_p >= 1.0F) {
    return;
  }
  double total = 0.0;
  for (const auto& candidate : candidates_) {
    total += candidate.weight;
  }
  // Sort only as far as the nucleus reaches: it is usually a few of many tokens.
  constexpr std::size_t kFirstSorted = 256;
  constexpr std::size_t kGrowth = 8;
  std::size_t sorted = 0;
  std::size_t kept = 0;
  double before = 0.0;
  while (kept < candidates_.size() && (kept == 0 || before < top_p * total)) {
    if (kept == sorted) {
      const std::size_t end = std::min(candidates_.size(), std::max(kFirstSorted, sorted * kGrowth));
      const auto first = candidates_.begin();
      std::partial_sort(first + static_cast<std::ptrdiff_t>(sorted), first + static_cast<std::ptrdiff_t>(end),
                        candidates_.end(), kMoreLikely);
      sorted = end;
    }
    before += candidates_[kept].weight;
    ++kept;
  }
  candidates_.resize(kept);
}

void Sampler::apply_min_p(float min_p) {
  if (min_p > 0.0F) {
    // The most likely token's weight is 1; it stays even if min_p is larger.
    const float threshold = std::min(min_p, 1.0F);
    std::erase_if(candidates_, [threshold](const Candidate& candidate) { return candidate.weight < threshold; });
  }
}

SampledToken Sampler::draw(double uniform) const {
  double total = 0.0;
  for (const auto& candidate : candidates_) {
    total += candidate.weight;
  }
  const double target = uniform * total;
  double cumulative = 0.0;
  const Candidate* chosen = nullptr;
  for (const auto& candidate : candidates_) {
    if (candidate.weight <= 0.0F) {
      continue;
    }
    chosen = &candidate;
    cumulative += candidate.weight;
    if (cumulative > target) {
      break;
    }
  }
  return {.token = chosen->token, .logprob = static_cast<float>(std::log(chosen->weight / total))};
}

}  // namespace troupe
