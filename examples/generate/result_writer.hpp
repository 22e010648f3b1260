#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/request.hpp"
#include "cache/error.hpp"
#include "examples/generate/options.hpp"

namespace troupe::generate {

/// The answer to one line of the input.
struct LineResult {
  /// Number of the line or argument, from 1.
  std::size_t line = 0;
  /// Place among the results in input order, from 0; blank lines have none.
  std::size_t place = 0;
  std::string id;
  /// Absent if the model has no tokenizer.
  std::optional<std::string> text;
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;
  FinishReason reason = FinishReason::none;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  /// Set if the line was not answered, or not to its end.
  Error error;
};

/// One JSON object on one line, with its line end.
[[nodiscard]] std::string format_result(const LineResult& result);

/// Writes results to a stream, at once or in the order of their places. Each is flushed, so that nothing finished is
/// lost.
class ResultWriter {
 public:
  /// @param out Stays the caller's; null if results go nowhere.
  ResultWriter(std::FILE* out, ResultOrder order) : out_(out), order_(order) {}

  /// Each place from 0 upwards comes once. Error `io_error` if the stream takes no more.
  [[nodiscard]] Result<void> write(const LineResult& result);

 private:
  [[nodiscard]] Result<void> write_text(const std::string& text);

  std::FILE* out_;
  ResultOrder order_;
  /// By place, what waits for an earlier one.
  std::map<std::size_t, std::string> waiting_;
  std::size_t next_place_ = 0;
};

}  // namespace troupe::generate
