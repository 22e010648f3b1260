/// Requests from submission to their last output.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

TEST_CASE("every request gets the tokens that it would get alone") {
  const std::int32_t depth = GENERATE(1, 2);
  const std::int32_t max_batch_tokens = GENERATE(7, 512);
  const std::int32_t block_size = GENERATE(1, 4, 16);
  const std::string scheduler = GENERATE("fifo", "prefill_first");
  SyncEngineOptions options = default_options(2048 / block_size, block_size);
  options.config.pipeline_depth = depth;
  options.config.max_batch_tokens = max_batch_tokens;
  options.config.scheduler = scheduler;
  SyncEngine engine(options);
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 12; ++i) {
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(i * 7, 1 + i * 5), 1 + i * 3));
    engine.accept(requests.back());
  }
  engine.run();
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, options.model, 1024));
    CHECK(engine.result(request.id).reason == FinishReason::length);
    CHECK(engine.result(request.id).prompt_tokens == static_cast<std::int32_t>(request.prompt_ids.size()));
  }
}

}  // namespace
}  // namespace troupe::test
