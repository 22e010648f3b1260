#include "examples/generate/result_writer.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

namespace troupe::generate {

std::string format_result(const LineResult& result) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  if (!result.id.empty()) {
    json["id"] = result.id;
  }
  if (result.reason == FinishReason::none) {
    json["line"] = result.line;
  } else {
    json["text"] = result.text ? Json(*result.text) : Json(nullptr);
    json["token_ids"] = result.token_ids;
    if (!result.logprobs.empty()) {
      Json logprobs = Json::array();
      for (const float logprob : result.logprobs) {
        // JSON has no infinity.
        logprobs.push_back(std::isfinite(logprob) ? Json(logprob) : Json(nullptr));
      }
      json["logprobs"] = std::move(logprobs);
    }
    json["finish_reason"] = to_string(result.reason);
    json["usage"] = {{"prompt_tokens", result.prompt_tokens},
                     {"cached_tokens", result.cached_tokens},
                     {"completion_tokens", result.token_ids.size()}};
  }
  if (result.error.code != ErrorCode::none) {
    json["error"] = {{"code", to_string(result.error.code)}, {"message", result.error.message}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<void> ResultWriter::write(const LineResult& result) {
  if (out_ == nullptr) {
    return {};
  }
  if (order_ == ResultOrder::finish) {
    return write_text(format_result(result));
  }
  waiting_.emplace(result.place, format_result(result));
  while (!waiting_.empty() && waiting_.begin()->first == next_place_) {
    if (Result<void> written = write_text(waiting_.begin()->second); !written) {
      return written;
    }
    waiting_.erase(waiting_.begin());
    ++next_place_;
  }
  return {};
}

Result<void> ResultWriter::write_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size() || std::fflush(out_) != 0) {
    return fail(ErrorCode::io_error, std::string("cannot write results: ") + std::strerror(errno));
  }
  return {};
}

}  // namespace troupe::generate
