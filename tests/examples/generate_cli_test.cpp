/// troupe-generate as a user runs it.

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/examples/process.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden_models.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

std::string tiny_model() { return golden_path("models/llama_tiny"); }

/// The program with the options given.
std::vector<std::string> generate(const std::string& model, const std::vector<std::string>& options) {
  std::vector<std::string> command{TROUPE_GENERATE, "--model", model, "--threads", "1", "--num-blocks", "512"};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

std::vector<json> parse_lines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line));
  }
  return lines;
}

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("troupe_cli_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder(Folder&&) = delete;
  Folder& operator=(Folder&&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file) << content;
    return file;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(path_ / name).rdbuf();
    return content.str();
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string golden_lines(const std::vector<GoldenPrompt>& prompts) {
  std::string lines;
  for (const GoldenPrompt& prompt : prompts) {
    lines +=
        json{{"prompt_ids", prompt.prompt_ids}, {"max_new_tokens", prompt.greedy.size()}, {"ignore_eos", true}}.dump() +
        "\n";
  }
  return lines;
}

TEST_CASE("generate answers a file of prompts as transformers does") {
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  const Folder folder;
  const std::string file = folder.write("prompts.jsonl", golden_lines(prompts));
  const std::string out = folder / "out.jsonl";
  const std::string trace = folder / "trace.json";
  const auto finished =
      run_program(generate(tiny_model(), {"--prompts", file, "--out", out, "--block-size", "16", "--trace", trace}));
  INFO(finished.errors);
  CHECK(finished.code == 0);
  CHECK(finished.output.empty());
  const auto results = parse_lines(folder.read("out.jsonl"));
  REQUIRE(results.size() == prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(i);
    CHECK(results[i].at("token_ids") == prompts[i].greedy);
    CHECK(results[i].at("finish_reason") == "length");
  }
  CHECK_FALSE(json::parse(folder.read("trace.json")).at("traceEvents").empty());
}

TEST_CASE("generate reads standard input and answers what it can") {
  const auto finished = run_program(generate(tiny_model(), {"--prompts", "-", "--order", "finish"}),
                                    "{\"id\": \"a\", \"prompt_ids\": [5, 6, 7, 8], \"max_new_tokens\": 8}\n"
                                    "{\"prompt_ids\": [5, 512]}\n"
                                    "{\n"
                                    "{\"id\": \"text\", \"prompt\": \"no tokenizer\"}\n");
  INFO(finished.errors);
  CHECK(finished.code == 1);
  const auto results = parse_lines(finished.output);
  REQUIRE(results.size() == 4);
  int num_errors = 0;
  for (const json& result : results) {
    num_errors += result.contains("error") ? 1 : 0;
    if (result.value("id", "") == "a") {
      CHECK(result.at("token_ids") == json({472, 6, 288, 52, 395, 6, 223, 211}));
    }
  }
  CHECK(num_errors == 3);
}

TEST_CASE("generate answers a line while standard input stays open") {
  Process process(generate(tiny_model(), {"--prompts", "-"}));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(process.write("{\"id\": " + std::to_string(i) + ", \"prompt_ids\": [5], \"max_new_tokens\": 2}\n"));
    CHECK(json::parse(process.read_line()).at("id") == std::to_string(i));
  }
  CHECK(process.wait().code == 0);
}

TEST_CASE("generate ends cleanly at Ctrl-C and at SIGTERM") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  Process process(generate(tiny_model(), {"--prompts", "-", "--order", "finish", "--max-batch-tokens", "16"}));
  constexpr int kLines = 400;
  std::thread writer([&] {
    for (int i = 0; i < kLines; ++i) {
      process.write("{\"prompt_ids\": [" + std::to_string(i) +
                    "], \"max_new_tokens\": 1000, \"ignore_eos\": true, \"prefix_sharing\": false}\n");
    }
    // Standard input stays open, so that the program cannot end by itself.
  });
  writer.join();
  CHECK(json::parse(process.read_line()).at("finish_reason") == "length");
  process.send_signal(signal);
  std::string output;
  for (std::string line; !(line = process.read_line()).empty();) {
    output += line;
  }
  const auto finished = process.wait();
  INFO(finished.errors);
  CHECK(finished.code == 130);
  std::size_t num_cancelled = 0;
  const auto results = parse_lines(output);
  for (const json& result : results) {
    num_cancelled += result.at("finish_reason") == "cancelled" ? 1 : 0;
  }
  CHECK(num_cancelled > 0);
  CHECK(results.size() <= kLines - 1);
}

TEST_CASE("generate refuses a model that it cannot load with code 3 and keeps earlier results") {
  const Folder folder;
  const std::string out = folder.write("out.jsonl", "earlier\n");
  const auto refusal = [&](const std::string& model, const std::string& mentioned) {
    const auto finished = run_program(generate(model, {"--out", out, "Hello"}));
    CAPTURE(model, finished.errors);
    CHECK(finished.code == 3);
    CHECK(finished.errors.find(mentioned) != std::string::npos);
    CHECK(folder.read("out.jsonl") == "earlier\n");
  };
  refusal(folder / "missing", "missing");
  refusal(folder / "missing.gguf", "missing.gguf");
  refusal(folder.write("empty.gguf", ""), "empty.gguf");
  refusal(folder.write("text.gguf", std::string(1000, 'x')), "text.gguf");

  const std::filesystem::path truncated = folder / "truncated";
  std::filesystem::copy(tiny_model(), truncated);
  std::filesystem::resize_file(truncated / "model.safetensors",
                               std::filesystem::file_size(truncated / "model.safetensors") - 1);
  refusal(truncated, "model.safetensors");
  std::ofstream(truncated / "config.json") << "{";
  refusal(truncated, "config.json");
}

TEST_CASE("generate refuses wrong usage with code 2") {
  const Folder folder;
  const std::string file = folder.write("prompts.jsonl", "{\"prompt_ids\": [1]}\n");
  CHECK(run_program(generate(tiny_model(), {})).code == 2);
  CHECK(run_program(generate(tiny_model(), {"--prompts", folder / "missing"})).code == 2);
  CHECK(run_program(generate(tiny_model(), {"--prompts", folder / "."})).code == 2);
  CHECK(run_program(generate(tiny_model(), {"--prompts", file, "--out", folder / "missing/out"})).code == 2);
  CHECK(run_program(generate(tiny_model(), {"--prompts", file, "--out", file})).code == 2);
  CHECK(folder.read("prompts.jsonl") == "{\"prompt_ids\": [1]}\n");
  CHECK(run_program({TROUPE_GENERATE, "--help"}).code == 0);
}

TEST_CASE("generate refuses --chat for a model that cannot chat") {
  const auto finished = run_program(generate(tiny_model(), {"--chat", "Hello"}));
  CHECK(finished.code == 3);
  CHECK(finished.errors.find("--chat") != std::string::npos);
}

TEST_CASE("generate survives a reader that goes away") {
  Process process(generate(tiny_model(), {"--prompts", "-"}));
  process.close_output();
  process.write("{\"prompt_ids\": [5], \"max_new_tokens\": 2}\n");
  const auto finished = process.wait();
  CHECK(finished.code == 3);
  CHECK(finished.errors.find("cannot write results") != std::string::npos);
}

TEST_CASE("generate chats with SmolLM2") {
  const auto model = smollm2_path();
  if (!model) {
    return;
  }
  const auto command = [&](const std::string& option) {
    return generate(*model, {"--chat", "What is the capital of France?", "--max-new-tokens", "24", option});
  };
  const auto finished = run_program(command("--no-progress"));
  INFO(finished.errors);
  CHECK(finished.code == 0);
  const auto results = parse_lines(finished.output);
  REQUIRE(results.size() == 1);
  const auto text = results[0].at("text").get<std::string>();
  CHECK(text.find("Paris") != std::string::npos);
  CHECK(text.find("<|") == std::string::npos);
  CHECK(run_program(command("--stream")).output == text + "\n");
}

}  // namespace
}  // namespace troupe::test
