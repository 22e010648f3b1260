#include <cmath>
#include <functional>
#include <string>

#include "actors/engine_config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"

namespace troupe::test {
namespace {

TEST_CASE("the default configuration is valid") { CHECK(error_of(validate(EngineConfig{})) == ""); }

TEST_CASE("a wrong setting is refused with its name and its limits and what was found") {
  struct Case {
    std::function<void(EngineConfig&)> change;
    std::string message;
  };
  const Case wrong = GENERATE(
      Case{[](EngineConfig& c) { c.block_size = 0; }, "block_size must be in [1, 536870911], but is 0"},
      Case{[](EngineConfig& c) { c.num_blocks = -1; }, "num_blocks must be in [0, 67108861], but is -1"},
      Case{[](EngineConfig& c) { c.num_blocks = 1 << 30; }, "num_blocks must be in [0, 67108861], but is 1073741824"},
      Case{[](EngineConfig& c) { c.max_batch_tokens = 0; }, "max_batch_tokens must be in [1, 2147483647], but is 0"},
      Case{[](EngineConfig& c) { c.max_batch_requests = -5; },
           "max_batch_requests must be in [1, 2147483647], but is -5"},
      Case{[](EngineConfig& c) { c.max_waiting_requests = 0; },
           "max_waiting_requests must be in [1, 2147483647], but is 0"},
      Case{[](EngineConfig& c) { c.pipeline_depth = 0; }, "pipeline_depth must be in [1, 2], but is 0"},
      Case{[](EngineConfig& c) { c.pipeline_depth = 3; }, "pipeline_depth must be in [1, 2], but is 3"},
      Case{[](EngineConfig& c) { c.cache_bytes = -1; }, "cache_bytes must be in [0, 9223372036854775807], but is -1"},
      Case{[](EngineConfig& c) { c.pool_threads = 0; }, "pool_threads must be in [1, 1024], but is 0"},
      Case{[](EngineConfig& c) { c.scheduler = "lifo"; },
           R"(scheduler must be "fifo" or "prefill_first", but is "lifo")"},
      Case{[](EngineConfig& c) { c.safety_margin = 1.0; },
           "safety_margin must be below 1 (negative for the scheduler's default), but is 1.000000"},
      Case{[](EngineConfig& c) { c.safety_margin = std::nan(""); },
           "safety_margin must be below 1 (negative for the scheduler's default), but is nan"});
  EngineConfig config;
  wrong.change(config);
  const Result<void> checked = validate(config);
  CHECK(error_of(checked) == wrong.message);
  CHECK(code_of(checked) == ErrorCode::invalid_request);
}

}  // namespace
}  // namespace troupe::test
