#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/types.hpp"

namespace troupe {

/// A chosen token and its log-probability under the distribution that it was chosen from: the softmax of the raw
/// logits if greedy, else of the processed ones (temperature and filters), as transformers' continuous batching has it.
struct SampledToken {
  TokenId token = 0;
  /// 0 unless `SamplingParams::return_logprobs`.
  float logprob = 0.0F;
};

/// Temperatures below this are greedy. There, a softmax tells only exact ties from the argmax, and a cold request must
/// not throw dice for those.
inline constexpr float kGreedyBelowTemperature = 1e-3F;

/// Chooses tokens. Keeps scratch memory between calls, so one sampler belongs to one thread.
///
/// Order and meaning are those of transformers' logits warpers: temperature, top-k, top-p, min-p. One difference: top-k
/// keeps exactly k tokens, the ones with lower ids of equals (transformers keeps all that tie with the k-th).
class Sampler {
 public:
  /// Chooses a token for a row of logits (vocab_size values). `position` is the place that the token takes in its
  /// sequence; with the request's seed it alone decides the random number. Ties go to the lowest id, as in
  /// torch.argmax. Error `step_failed` if a logit is NaN or +inf, or if all are -inf.
  [[nodiscard]] Result<SampledToken> sample(std::span<const float> logits, const SamplingParams& params,
                                            std::int64_t position);

 private:
  struct Candidate {
    /// Probability relative to the most likely token's.
    float weight = 0.0F;
    TokenId token = 0;
  };

  void apply_top_k(std::int32_t top_k);
  void apply_top_p(float top_p);
  void apply_min_p(float min_p);
  [[nodiscard]] SampledToken draw(double uniform) const;

  std::vector<Candidate> candidates_;
};

}  // namespace troupe
