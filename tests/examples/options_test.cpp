#include "examples/generate/options.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace troupe::generate {
namespace {

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "troupe-generate");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST_CASE("every option reaches its setting") {
  const CommandLine line = parse({"--model",
                                  "m",
                                  "--prompts",
                                  "-",
                                  "--out",
                                  "o",
                                  "--dtype",
                                  "bf16",
                                  "--threads",
                                  "2",
                                  "--block-size",
                                  "16",
                                  "--num-blocks",
                                  "64",
                                  "--max-batch-tokens",
                                  "7",
                                  "--scheduler",
                                  "prefill_first",
                                  "--pipeline-depth",
                                  "1",
                                  "--prefix-sharing",
                                  "off",
                                  "--chat",
                                  "--stream",
                                  "--trace",
                                  "t.json",
                                  "--no-progress",
                                  "--order",
                                  "finish",
                                  "--max-new-tokens",
                                  "9",
                                  "--temperature",
                                  "0.5",
                                  "--top-k",
                                  "3",
                                  "--top-p",
                                  "0.9",
                                  "--min-p",
                                  "0.05",
                                  "--seed",
                                  "18446744073709551615",
                                  "--ignore-eos"});
  INFO(line.message);
  REQUIRE_FALSE(line.exit_code);
  const Options& options = line.options;
  CHECK(options.model == "m");
  CHECK(options.prompts == "-");
  CHECK(options.out == "o");
  CHECK(options.executor.dtype == ComputeType::bf16);
  CHECK(options.executor.threads == 2);
  CHECK(options.engine.block_size == 16);
  CHECK(options.engine.num_blocks == 64);
  CHECK(options.engine.max_batch_tokens == 7);
  CHECK(options.engine.scheduler == "prefill_first");
  CHECK(options.engine.pipeline_depth == 1);
  CHECK_FALSE(options.engine.prefix_sharing);
  CHECK(options.engine.trace_file == "t.json");
  CHECK(options.chat);
  CHECK(options.stream);
  CHECK_FALSE(options.progress);
  CHECK(options.order == ResultOrder::finish);
  CHECK(options.defaults.max_new_tokens == 9);
  CHECK(options.defaults.temperature == 0.5F);
  CHECK(options.defaults.top_k == 3);
  CHECK(options.defaults.top_p == 0.9F);
  CHECK(options.defaults.min_p == 0.05F);
  CHECK(options.defaults.seed == 18446744073709551615U);
  CHECK(options.defaults.ignore_eos == true);
}

TEST_CASE("what is not given is left open") {
  const CommandLine line = parse({"--model", "m", "Hello", "world"});
  INFO(line.message);
  REQUIRE_FALSE(line.exit_code);
  CHECK(line.options.arguments == std::vector<std::string>{"Hello", "world"});
  CHECK(line.options.out == "-");
  CHECK(line.options.executor.dtype == ComputeType::f32);
  CHECK(line.options.engine.prefix_sharing);
  CHECK(line.options.progress);
  CHECK_FALSE(line.options.defaults.max_new_tokens);
  CHECK_FALSE(line.options.defaults.temperature);
  CHECK_FALSE(line.options.defaults.ignore_eos);
}

TEST_CASE("wrong usage ends with code 2 and names the option") {
  struct Case {
    std::vector<const char*> arguments;
    const char* mentioned;
  };
  const Case cases[] = {
      {{"Hello"}, "--model"},
      {{"--model", "m"}, "--prompts"},
      {{"--model", "m", "Hello", "--prompts", "p"}, "not both"},
      {{"--model", "m", "Hello", "--dtype", "f16"}, "--dtype"},
      {{"--model", "m", "Hello", "--threads", "-1"}, "--threads"},
      {{"--model", "m", "Hello", "--block-size", "0"}, "block_size"},
      {{"--model", "m", "Hello", "--num-blocks", "-1"}, "num_blocks"},
      {{"--model", "m", "Hello", "--max-batch-tokens", "0"}, "max_batch_tokens"},
      {{"--model", "m", "Hello", "--scheduler", "lifo"}, "scheduler"},
      {{"--model", "m", "Hello", "--pipeline-depth", "3"}, "pipeline_depth"},
      {{"--model", "m", "Hello", "--prefix-sharing", "maybe"}, "--prefix-sharing"},
      {{"--model", "m", "Hello", "--order", "random"}, "--order"},
      {{"--model", "m", "Hello", "--max-new-tokens", "0"}, "--max-new-tokens"},
      {{"--model", "m", "Hello", "--temperature", "nan"}, "temperature"},
      {{"--model", "m", "Hello", "--temperature", "-1"}, "temperature"},
      {{"--model", "m", "Hello", "--top-p", "0"}, "top_p"},
      {{"--model", "m", "Hello", "--min-p", "2"}, "min_p"},
      {{"--model", "m", "Hello", "--seed", "-1"}, "--seed"},
      {{"--model", "m", "Hello", "--nonsense"}, "--nonsense"},
  };
  for (const Case& example : cases) {
    const CommandLine line = parse(example.arguments);
    CAPTURE(example.mentioned, line.message);
    CHECK(line.exit_code == 2);
    CHECK(line.message.find(example.mentioned) != std::string::npos);
  }
}

TEST_CASE("help names every option and exit code") {
  const CommandLine line = parse({"--help"});
  CHECK(line.exit_code == 0);
  for (const char* part : {"--model",
                           "--prompts",
                           "--out",
                           "--dtype",
                           "--threads",
                           "--block-size",
                           "--num-blocks",
                           "--max-batch-tokens",
                           "--scheduler",
                           "--pipeline-depth",
                           "--prefix-sharing",
                           "--chat",
                           "--stream",
                           "--trace",
                           "--progress",
                           "--order",
                           "--seed",
                           "Exit codes",
                           "130",
                           "prompt_ids",
                           "finish_reason"}) {
    CAPTURE(part);
    CHECK(line.message.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::generate
