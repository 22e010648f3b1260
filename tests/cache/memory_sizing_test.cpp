#include "cache/memory_sizing.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>

#include "cache/host_memory.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

CacheCosts costs_of_a_small_model() {
  return {.block_size = 32,
          .num_groups = 1,
          .layers_per_group = 30,
          .kv_bytes_per_token_and_layer = 1536,
          .activation_bytes_per_token = 200'000};
}

TEST_CASE("the largest cache that fits is found and one block more does not fit") {
  const CacheCosts costs = costs_of_a_small_model();
  const std::int64_t budget = GENERATE(50'000'000LL, 1'000'000'000LL, 20'000'000'000LL);
  const auto size = solve_cache_size(costs, {.max_batch_tokens = 64}, budget);
  REQUIRE(size);
  CHECK(size->max_batch_tokens == 64);
  CHECK(size->bytes == cache_footprint(costs, size->num_blocks, 64));
  CHECK(size->bytes <= budget);
  CHECK(cache_footprint(costs, size->num_blocks + 1, 64) > budget);
}

TEST_CASE("what is given is kept and checked against the budget") {
  const CacheCosts costs = costs_of_a_small_model();
  const auto size = solve_cache_size(costs, {.num_blocks = 10, .max_batch_tokens = 8}, 1'000'000'000);
  REQUIRE(size);
  CHECK(size->num_blocks == 10);
  CHECK(size->max_batch_tokens == 8);
  const auto too_large = solve_cache_size(costs, {.num_blocks = 1000, .max_batch_tokens = 8}, 1'000'000);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().message.find("1000000 may be used") != std::string::npos);
}

TEST_CASE("costs out of range are errors instead of overflows") {
  CacheCosts costs = costs_of_a_small_model();
  costs.kv_bytes_per_token_and_layer = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of(solve_cache_size(costs, {}, 1'000'000'000)) == ErrorCode::invalid_request);
  costs = costs_of_a_small_model();
  costs.block_size = 0;
  CHECK(code_of(solve_cache_size(costs, {}, 1'000'000'000)) == ErrorCode::invalid_request);
}

TEST_CASE("a budget is bytes or a fraction of what is available") {
  CHECK(resolve_memory_budget({.bytes = 100}, 1000) == 100);
  CHECK(resolve_memory_budget({.fraction = 0.5}, 1000) == 500);
  CHECK(code_of(resolve_memory_budget({.bytes = 1001}, 1000)) == ErrorCode::invalid_request);
  CHECK(code_of(resolve_memory_budget({.fraction = 0.0}, 1000)) == ErrorCode::invalid_request);
  CHECK(code_of(resolve_memory_budget({.fraction = std::numeric_limits<double>::quiet_NaN()}, 1000)) ==
        ErrorCode::invalid_request);
}

TEST_CASE("this machine tells its memory") {
  const auto memory = read_host_memory();
  REQUIRE(memory);
  CHECK(memory->available_bytes > 0);
  CHECK_FALSE(memory->limited_by.empty());
}

TEST_CASE("the limit of a control group counts and its page cache does not") {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("troupe_memory_" + std::to_string(std::random_device{}()));
  const auto write = [&root](const std::string& name, const std::string& content) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << content;
  };
  write("proc/meminfo", "MemTotal: 10000 kB\nMemFree: 100 kB\nMemAvailable: 8000 kB\n");
  write("proc/self/cgroup", "0::/app\n");
  write("cgroup/app/memory.max", "4096000\n");
  write("cgroup/app/memory.current", "1096000\n");
  write("cgroup/app/memory.stat", "anon 1000000\ninactive_file 96000\n");
  write("cgroup/cgroup.controllers", "memory\n");
  const auto memory = read_host_memory({.proc = root / "proc", .cgroup = root / "cgroup"});
  std::filesystem::remove_all(root);
  REQUIRE(memory);
  CHECK(memory->available_bytes == 4096000 - (1096000 - 96000));
  CHECK(memory->limited_by.find("memory.max") != std::string::npos);
}

}  // namespace
}  // namespace troupe::test
