/// The whole of troupe-generate but for its model: a simulated one samples bytes.

#include "examples/generate/job.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/simulated_executor.hpp"
#include "tests/support/catch.hpp"

namespace troupe::generate {
namespace {

using nlohmann::json;

constexpr std::int32_t kVocabulary = 257;

/// Tokens are bytes, and one more that ends a text.
class ByteTokenizer final : public Tokenizer {
 public:
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view text, bool /*add*/) const override {
    std::vector<TokenId> ids;
    for (const char byte : text) {
      ids.push_back(static_cast<unsigned char>(byte));
    }
    return ids;
  }
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override {
    const auto decoder = make_decoder(skip_special_tokens);
    std::string text = decoder->push(ids);
    return text + decoder->finish();
  }
  [[nodiscard]] std::string_view token_bytes(TokenId id) const override {
    return id >= 0 && id < 256 ? std::string_view(bytes_).substr(static_cast<std::size_t>(id), 1) : "";
  }
  [[nodiscard]] bool is_special(TokenId id) const override { return id == 256; }
  [[nodiscard]] std::int32_t vocab_size() const override { return kVocabulary; }
  [[nodiscard]] std::optional<TokenId> token_to_id(std::string_view /*token*/) const override { return std::nullopt; }
  [[nodiscard]] std::string id_to_token(TokenId id) const override { return std::string(token_bytes(id)); }
  [[nodiscard]] std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
  [[nodiscard]] std::optional<TokenId> eos_token_id() const override { return 256; }

 private:
  std::string bytes_ = [] {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }();
};

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

/// Both ends of a pipe as streams.
struct Pipe {
  File reader;
  File writer;

  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    reader.reset(::fdopen(ends[0], "r"));
    writer.reset(::fdopen(ends[1], "w"));
  }
  void write(const std::string& text) const {
    std::fputs(text.c_str(), writer.get());
    std::fflush(writer.get());
  }
  /// Waits for a line.
  [[nodiscard]] json read_result() const {
    std::array<char, 1U << 16U> line{};
    REQUIRE(std::fgets(line.data(), line.size(), reader.get()) != nullptr);
    return json::parse(line.data());
  }
};

/// troupe-generate with standard input and output as pipes; results must fit into a pipe's buffer.
class Program {
 public:
  Options options;
  ModelFiles files;
  SimulatedExecutorOptions executor{.vocab_size = kVocabulary};
  Pipe input;
  Pipe output;
  Pipe interrupts;
  std::FILE* results = output.writer.get();
  std::FILE* text = nullptr;

  Program() {
    files.path = "bytes";
    files.tokenizer = std::make_unique<ByteTokenizer>();
    options.prompts = "-";
    options.engine.num_blocks = 64;
    options.engine.block_size = 4;
    options.engine.pool_threads = 1;
  }

  /// Runs to the end, or until the test interrupts it.
  [[nodiscard]] Result<int> run() {
    ModelDescription model{.name = "bytes", .vocab_size = kVocabulary, .max_position_embeddings = 1'000'000};
    model.layer_types = {AttentionType::full};
    model.eos_token_ids = {256};
    model.kv_bytes_per_token_and_layer = 4;
    const auto engine = Engine::create(options.engine, model, [this]() -> Result<std::unique_ptr<StepExecutor>> {
      return std::make_unique<SimulatedExecutor>(executor);
    });
    if (!engine) {
      return fail(engine.error().code, engine.error().message);
    }
    const Result<PromptEncoder> encoder = PromptEncoder::make(files, options);
    if (!encoder) {
      return fail(encoder.error().code, encoder.error().message);
    }
    Job job(**engine, files, *encoder, options,
            {.prompts = options.prompts.empty() ? -1 : ::fileno(input.reader.get()),
             .interrupt = ::fileno(interrupts.reader.get()),
             .results = results,
             .text = text});
    Result<int> code = job.run();
    (*engine)->shutdown(ShutdownMode::cancel, std::chrono::milliseconds(0));
    return code;
  }

  /// Answers the lines given; returns the results.
  [[nodiscard]] std::vector<json> answer(const std::string& lines, int expected_code) {
    input.write(lines);
    input.writer.reset();
    const Result<int> code = run();
    INFO((code ? "" : code.error().message));
    REQUIRE(code);
    CHECK(*code == expected_code);
    output.writer.reset();
    std::vector<json> answers;
    std::array<char, 1U << 16U> line{};
    while (std::fgets(line.data(), line.size(), output.reader.get()) != nullptr) {
      answers.push_back(json::parse(line.data()));
    }
    return answers;
  }
};

std::vector<TokenId> expected(std::vector<TokenId> prompt, std::uint64_t seed, std::int32_t count) {
  return simulated_generate(prompt, {.seed = seed}, count, kVocabulary);
}

TEST_CASE("every line gets its answer in input order") {
  Program program;
  const auto answers = program.answer(
      "{\"id\": \"long\", \"prompt_ids\": [1, 2, 3], \"max_new_tokens\": 60, \"ignore_eos\": true}\n"
      "{\"id\": \"short\", \"prompt\": \"ab\", \"max_new_tokens\": 2, \"ignore_eos\": true, \"seed\": 9}\n"
      "{\"prompt\": \"cd\", \"max_new_tokens\": 1, \"ignore_eos\": true}",
      kAllAnswered);
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].at("id") == "long");
  CHECK(answers[0].at("token_ids") == expected({1, 2, 3}, 0, 60));
  CHECK(answers[0].at("finish_reason") == "length");
  CHECK(answers[0].at("usage") == json({{"prompt_tokens", 3}, {"cached_tokens", 0}, {"completion_tokens", 60}}));
  CHECK(answers[1].at("token_ids") == expected({'a', 'b'}, 9, 2));
  // Seeds count up, so that equal prompts get different answers.
  CHECK(answers[2].at("id") == "line-3");
  CHECK(answers[2].at("token_ids") == expected({'c', 'd'}, 2, 1));
}

TEST_CASE("a bad line gives an error line and the others are answered") {
  Program program;
  const auto answers = program.answer(
      "{\"id\": \"a\", \"prompt_ids\": [1], \"max_new_tokens\": 1}\n"
      "\n"
      "{broken\n"
      "{\"id\": \"a\", \"prompt_ids\": [1], \"max_new_tokens\": 1}\n"
      "{\"id\": \"range\", \"prompt_ids\": [1, 257]}\n"
      "{\"id\": \"empty\", \"prompt_ids\": []}\n"
      "{\"id\": \"none\", \"prompt\": \"\"}\n"
      "{\"id\": \"zero\", \"prompt_ids\": [1], \"max_new_tokens\": 0}\n"
      "{\"id\": \"huge\", \"prompt_ids\": [1], \"max_new_tokens\": 100000}\n"
      "{\"id\": \"hot\", \"prompt_ids\": [1], \"temperature\": -1}\n"
      "{\"id\": \"chat\", \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n"
      "{\"id\": \"last\", \"prompt_ids\": [1], \"max_new_tokens\": 1}\n",
      kSomeFailed);
  struct Case {
    const char* id;
    int line;
    const char* code;
    const char* mentioned;
  };
  const std::vector<Case> cases{{"a", 0, "", ""},
                                {"", 3, "invalid_request", "line"},
                                {"a", 4, "duplicate_id", "\"a\""},
                                {"range", 5, "invalid_request", "prompt_ids[1]"},
                                {"empty", 6, "invalid_request", "prompt_ids"},
                                {"none", 7, "invalid_request", "prompt"},
                                {"zero", 8, "invalid_request", "max_new_tokens"},
                                {"huge", 9, "request_too_long", "257"},
                                {"hot", 10, "invalid_request", "temperature"},
                                {"chat", 11, "unsupported", "chat template"},
                                {"last", 0, "", ""}};
  REQUIRE(answers.size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i, answers[i].dump());
    CHECK(answers[i].value("id", "") == cases[i].id);
    if (cases[i].line == 0) {
      CHECK(answers[i].at("finish_reason") != "failed");
      CHECK_FALSE(answers[i].contains("error"));
    } else {
      CHECK(answers[i].at("line") == cases[i].line);
      CHECK(answers[i].at("error").at("code") == cases[i].code);
      CHECK(answers[i].at("error").at("message").get<std::string>().find(cases[i].mentioned) != std::string::npos);
    }
  }
}

TEST_CASE("arguments are prompts") {
  Program program;
  program.options.prompts.clear();
  program.options.arguments = {"ab", "ab"};
  program.options.defaults.max_new_tokens = 3;
  program.options.defaults.ignore_eos = true;
  program.options.defaults.seed = 5;
  const auto answers = program.answer("", kAllAnswered);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].at("token_ids") == expected({'a', 'b'}, 5, 3));
  CHECK(answers[1].at("token_ids") == expected({'a', 'b'}, 6, 3));
}

TEST_CASE("a line is answered before the next one is written") {
  Program program;
  program.options.order = ResultOrder::finish;
  Result<int> code = -1;
  std::thread thread([&] { code = program.run(); });
  for (int i = 0; i < 3; ++i) {
    program.input.write("{\"id\": " + std::to_string(i) + ", \"prompt\": \"a\", \"max_new_tokens\": 2}\n");
    CHECK(program.output.read_result().at("id") == std::to_string(i));
  }
  program.input.writer.reset();
  thread.join();
  REQUIRE(code);
  CHECK(*code == kAllAnswered);
}

TEST_CASE("an interrupt writes what is finished and cancels the rest") {
  Program program;
  // A model so slow that the first prompt would take minutes.
  program.executor.real_time = true;
  program.executor.step_ns = 5'000'000;
  program.options.engine.num_blocks = 1 << 16;
  program.options.order = ResultOrder::finish;
  Result<int> code = -1;
  std::thread thread([&] { code = program.run(); });
  program.input.write(
      "{\"id\": \"long\", \"prompt_ids\": [2], \"max_new_tokens\": 200000, \"ignore_eos\": true}\n"
      "{\"id\": \"short\", \"prompt_ids\": [1], \"max_new_tokens\": 2, \"ignore_eos\": true}\n");
  CHECK(program.output.read_result().at("token_ids") == expected({1}, 1, 2));
  program.interrupts.write("x");
  const json cancelled = program.output.read_result();
  thread.join();
  CHECK(cancelled.at("id") == "long");
  CHECK(cancelled.at("finish_reason") == "cancelled");
  // It was ahead of the other one.
  const auto tokens = cancelled.at("token_ids").get<std::vector<TokenId>>();
  CHECK(tokens.size() >= 2);
  CHECK(tokens == expected({2}, 0, static_cast<std::int32_t>(tokens.size())));
  REQUIRE(code);
  CHECK(*code == kInterrupted);
}

TEST_CASE("texts of random bytes are valid UTF-8 and leave out the end of sequence") {
  Program program;
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines +=
        "{\"prompt\": \"" + std::to_string(i) + "\", \"max_new_tokens\": 200, \"seed\": " + std::to_string(i) + "}\n";
  }
  bool stopped = false;
  const ByteTokenizer tokenizer;
  for (const json& answer : program.answer(lines, kAllAnswered)) {
    const auto ids = answer.at("token_ids").get<std::vector<TokenId>>();
    // The parser has checked the UTF-8.
    CHECK(answer.at("text") == tokenizer.decode(ids, /*skip_special_tokens=*/true));
    stopped = stopped || answer.at("finish_reason") == "stop";
    CHECK((answer.at("finish_reason") == "stop") == (ids.back() == 256));
  }
  CHECK(stopped);
}

TEST_CASE("streamed text is the text of the results") {
  Program program;
  Pipe text;
  program.text = text.writer.get();
  program.options.stream = true;
  const auto answers = program.answer(
      "{\"prompt\": \"a\", \"max_new_tokens\": 30, \"ignore_eos\": true}\n"
      "{\"prompt\": \"b\", \"max_new_tokens\": 3, \"ignore_eos\": true}\n",
      kAllAnswered);
  text.writer.reset();
  std::string streamed(1U << 12U, '\0');
  streamed.resize(std::fread(streamed.data(), 1, streamed.size(), text.reader.get()));
  REQUIRE(answers.size() == 2);
  CHECK(streamed == answers[0].at("text").get<std::string>() + "\n" + answers[1].at("text").get<std::string>() + "\n");
}

TEST_CASE("a model without a tokenizer answers token ids only") {
  Program program;
  program.files.tokenizer = nullptr;
  const auto answers = program.answer(
      "{\"prompt_ids\": [1], \"max_new_tokens\": 2}\n"
      "{\"prompt\": \"a\"}\n",
      kSomeFailed);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].at("text").is_null());
  CHECK(answers[1].at("error").at("message").get<std::string>().find("tokenizer") != std::string::npos);
  program.options.chat = true;
  CHECK_FALSE(PromptEncoder::make(program.files, program.options));
}

TEST_CASE("results that cannot be written end the job") {
  Program program;
  const File full(std::fopen("/dev/full", "w"));
  program.results = full.get();
  program.input.write("{\"prompt\": \"a\", \"max_new_tokens\": 2}\n");
  const Result<int> code = program.run();
  REQUIRE_FALSE(code);
  CHECK(code.error().code == ErrorCode::io_error);
}

TEST_CASE("many more lines than are taken at once are all answered") {
  Program program;
  program.options.engine.num_blocks = 4096;
  const File file(std::tmpfile());
  program.results = file.get();
  std::thread writer([&] {
    for (int i = 0; i < 6000; ++i) {
      std::fputs("{\"prompt_ids\": [1, 2], \"max_new_tokens\": 1, \"seed\": 1}\n", program.input.writer.get());
    }
    program.input.writer.reset();
  });
  const Result<int> code = program.run();
  writer.join();
  REQUIRE(code);
  CHECK(*code == kAllAnswered);
  std::rewind(file.get());
  std::array<char, 1U << 12U> line{};
  int count = 0;
  while (std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    CHECK(json::parse(line.data()).at("id") == "line-" + std::to_string(++count));
  }
  CHECK(count == 6000);
}

}  // namespace
}  // namespace troupe::generate
