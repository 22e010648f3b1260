#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "model/config_json.hpp"
#include "model/expected_tensors.hpp"
#include "model/gguf_weights.hpp"
#include "model/model_files.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

using test::GgufImage;
using test::make_tensors;
using test::safetensors_image;
using test::TemporaryFolder;
using test::TestTensor;
using test::tiny_config;

std::string error_of(const Result<ModelFiles>& files) { return files ? "no error" : files.error().message; }

ModelFiles opened(const fs::path& path) {
  Result<ModelFiles> files = open_model(path);
  INFO((files ? "" : files.error().message));
  REQUIRE(files);
  return std::move(*files);
}

/// The tensors of the tiny model with a head of its own.
std::vector<TestTensor> tiny_tensors() { return make_tensors(*parse_config(tiny_config())); }

TestTensor& find(std::vector<TestTensor>& tensors, std::string_view name) {
  return *std::ranges::find(tensors, name, &TestTensor::name);
}

void remove(std::vector<TestTensor>& tensors, std::string_view name) {
  std::erase_if(tensors, [&](const TestTensor& tensor) { return tensor.name == name; });
}

/// Writes a model directory.
void write_model(const TemporaryFolder& folder, std::string_view config, const std::vector<TestTensor>& tensors) {
  folder.write("config.json", config);
  folder.write("model.safetensors", safetensors_image(tensors));
}

std::vector<float> read_all(const WeightSource& weights, const ExpectedTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(*element_count(tensor.shape)));
  const Result<void> read = weights.read_f32(tensor.name, tensor.shape, values);
  INFO((read ? "" : read.error().message));
  REQUIRE(read);
  return values;
}

TEST_CASE("a Hugging Face directory opens with all that it holds") {
  const ModelFiles files = opened(std::string(TROUPE_TEST_DATA) + "/models/llama_tiny");
  CHECK(files.config.model_type == "llama");
  CHECK(files.config.vocab_size == 512);
  CHECK(files.config.num_hidden_layers == 4);
  CHECK(files.config.head_dim == 16);
  CHECK(files.config.max_position_embeddings == 1024);
  CHECK(files.config.eos_token_ids == std::vector<TokenId>{2});
  CHECK(files.tokenizer == nullptr);
  CHECK_FALSE(files.chat_template);
  CHECK(files.warnings.empty());
  CHECK(files.weights->names().size() == 39);
  for (const ExpectedTensor& tensor : expected_tensors(files.config)) {
    CAPTURE(tensor.name);
    CHECK(test::raw_floats(read_all(*files.weights, tensor)) ==
          std::string_view(reinterpret_cast<const char*>(files.weights->tensor(tensor.name)->bytes.data()),
                           files.weights->tensor(tensor.name)->bytes.size()));
  }
}

TEST_CASE("what is no model is refused by its path") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK(error_of(open_model(folder.path() / "nowhere")) == path + "/nowhere: No such file or directory");
  CHECK(open_model(folder.path() / "nowhere").error().code == ErrorCode::io_error);
  CHECK(error_of(open_model(folder.path())) == path + "/config.json: No such file or directory");
  CHECK_THAT(error_of(open_model(folder.write("empty.gguf", ""))),
             Catch::StartsWith(path + "/empty.gguf: expected a GGUF"));
  fs::create_directory(folder.path() / "config.json");
  CHECK(error_of(open_model(folder.path())) == path + "/config.json: expected a file, found a directory");
  fs::remove(folder.path() / "config.json");
  folder.write("config.json", tiny_config());
  CHECK(error_of(open_model(folder.path())) == path + "/model.safetensors: No such file or directory");
  folder.write("config.json", R"({"model_type": "gpt2"})");
  CHECK_THAT(error_of(open_model(folder.path())),
             Catch::StartsWith(path + "/config.json: /model_type: expected one of"));
}

TEST_CASE("a file that may not be read is refused by its path") {
  const TemporaryFolder folder;
  write_model(folder, tiny_config(), tiny_tensors());
  const fs::path path = folder.path() / "model.safetensors";
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(path, fs::perms::none);
  // Root may read everything, so be nobody meanwhile.
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    REQUIRE(::seteuid(65534) == 0);
  }
  const std::string error = error_of(open_model(folder.path()));
  if (is_root) {
    REQUIRE(::seteuid(0) == 0);
  }
  CHECK(error == path.string() + ": Permission denied");
}

TEST_CASE("a tensor that is missing or of another shape is refused by name") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "model.safetensors").string();
  std::vector<TestTensor> tensors = tiny_tensors();
  SECTION("missing") {
    remove(tensors, "model.layers.0.mlp.up_proj.weight");
    write_model(folder, tiny_config(), tensors);
    CHECK(error_of(open_model(folder.path())) ==
          folder.path().string() + ": tensor \"model.layers.0.mlp.up_proj.weight\": missing, expected shape [12, 8]");
  }
  SECTION("of another shape") {
    find(tensors, "model.layers.0.mlp.up_proj.weight").shape = {8, 12};
    write_model(folder, tiny_config(), tensors);
    CHECK(error_of(open_model(folder.path())) ==
          file + ": tensor \"model.layers.0.mlp.up_proj.weight\": expected shape [12, 8], found [8, 12]");
  }
  SECTION("for another vocabulary") {
    write_model(folder, tiny_config(R"(, "vocab_size_": 1)"), tensors);
    std::string config = tiny_config();
    config.replace(config.find("\"vocab_size\": 16"), 16, "\"vocab_size\": 17");
    folder.write("config.json", config);
    CHECK(error_of(open_model(folder.path())) ==
          file + ": tensor \"model.embed_tokens.weight\": expected shape [17, 8], found [16, 8]");
  }
}

TEST_CASE("tensors that nothing needs are a warning") {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = tiny_tensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {1}, {1.0F}});
  write_model(folder, tiny_config(), tensors);
  CHECK(opened(folder.path()).warnings.empty());
  tensors.push_back({"model.layers.1.mlp.up_proj.weight", {1}, {1.0F}});
  write_model(folder, tiny_config(), tensors);
  CHECK(opened(folder.path()).warnings ==
        std::vector<std::string>{folder.path().string() +
                                 ": 1 tensors that the model does not need: \"model.layers.1.mlp.up_proj.weight\""});
}

TEST_CASE("a head is tied or its own as transformers has it") {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = tiny_tensors();
  const std::string tied = tiny_config(R"(, "tie_word_embeddings": true)");
  SECTION("tied and not in the file") {
    remove(tensors, "lm_head.weight");
    write_model(folder, tied, tensors);
    CHECK(opened(folder.path()).config.tie_word_embeddings);
  }
  SECTION("tied and in the file once more") {
    find(tensors, "lm_head.weight").values = find(tensors, "model.embed_tokens.weight").values;
    write_model(folder, tied, tensors);
    const ModelFiles files = opened(folder.path());
    CHECK(files.config.tie_word_embeddings);
    CHECK(files.warnings.empty());
  }
  SECTION("tied but another one is in the file, which wins") {
    write_model(folder, tied, tensors);
    const ModelFiles files = opened(folder.path());
    CHECK_FALSE(files.config.tie_word_embeddings);
    REQUIRE(files.warnings.size() == 1);
    CHECK_THAT(files.warnings[0], Catch::Contains("lm_head.weight differs from the embedding"));
  }
  SECTION("its own") {
    write_model(folder, tiny_config(R"(, "tie_word_embeddings": false)"), tensors);
    CHECK_FALSE(opened(folder.path()).config.tie_word_embeddings);
  }
  SECTION("its own by default but not in the file") {
    remove(tensors, "lm_head.weight");
    write_model(folder, tiny_config(), tensors);
    CHECK(error_of(open_model(folder.path())) ==
          folder.path().string() + ": tensor \"lm_head.weight\": missing, expected shape [16, 8]");
  }
}

TEST_CASE("tokens that end a sequence come from the generation configuration if it names any") {
  const TemporaryFolder folder;
  write_model(folder, tiny_config(R"(, "eos_token_id": 5)"), tiny_tensors());
  CHECK(opened(folder.path()).config.eos_token_ids == std::vector<TokenId>{5});
  folder.write("generation_config.json", R"({"eos_token_id": [2, 7], "temperature": 0.5})");
  CHECK(opened(folder.path()).config.eos_token_ids == std::vector<TokenId>{2, 7});
  CHECK(opened(folder.path()).generation.temperature == 0.5F);
  folder.write("generation_config.json", R"({"eos_token_id": null})");
  CHECK(opened(folder.path()).config.eos_token_ids == std::vector<TokenId>{5});
  folder.write("generation_config.json", R"({"eos_token_id": 16})");
  CHECK(error_of(open_model(folder.path())) == (folder.path() / "generation_config.json").string() +
                                                   ": /eos_token_id: expected an integer from 0 to 15, found 16");
  folder.write("generation_config.json", "{");
  CHECK_THAT(error_of(open_model(folder.path())), Catch::Contains("generation_config.json: not valid JSON"));
}

TEST_CASE("a chat template comes from its file or the tokenizer's configuration") {
  const TemporaryFolder folder;
  write_model(folder, tiny_config(), tiny_tensors());
  const auto template_with = [&folder](std::string_view config) {
    folder.write("tokenizer_config.json", config);
    return opened(folder.path()).chat_template;
  };
  CHECK_FALSE(template_with("{}"));
  CHECK_FALSE(template_with(R"({"chat_template": null})"));
  CHECK(template_with(R"({"chat_template": "{{ a }}"})") == "{{ a }}");
  CHECK(template_with(R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                            {"name": "default", "template": "d"}]})") == "d");
  CHECK_FALSE(template_with(R"({"chat_template": [{"name": "tool_use", "template": "t"}]})"));
  folder.write("tokenizer_config.json", R"({"chat_template": 5})");
  CHECK(error_of(open_model(folder.path())) ==
        (folder.path() / "tokenizer_config.json").string() + ": /chat_template: expected a string, found 5");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  CHECK_THAT(error_of(open_model(folder.path())), Catch::Contains("/chat_template/0/template: expected a string"));
  folder.write("chat_template.jinja", "{{ from_file }}");
  CHECK(opened(folder.path()).chat_template == "{{ from_file }}");
}

TEST_CASE("a directory with a tokenizer that cannot be read says so") {
  const TemporaryFolder folder;
  write_model(folder, tiny_config(), tiny_tensors());
  folder.write("tokenizer.model", "anything");
  const ModelFiles files = opened(folder.path());
  CHECK(files.tokenizer == nullptr);
  REQUIRE(files.warnings.size() == 1);
  CHECK_THAT(files.warnings[0], Catch::Contains("tokenizer.model is not supported without tokenizer.json"));
  folder.write("tokenizer.json", "{");
  CHECK_THAT(error_of(open_model(folder.path())), Catch::Contains("tokenizer.json"));
}

const std::map<std::string, std::string> gguf_stems = {
    {"input_layernorm", "attn_norm"},         {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},           {"self_attn.o_proj", "attn_output"}, {"mlp.gate_proj", "ffn_gate"},
    {"post_attention_layernorm", "ffn_norm"}, {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
};

std::string gguf_name(const std::string& name) {
  if (name == "model.embed_tokens.weight") {
    return "token_embd.weight";
  }
  if (name == "model.norm.weight") {
    return "output_norm.weight";
  }
  if (name == "lm_head.weight") {
    return "output.weight";
  }
  const std::string prefix = "model.layers.0.";
  const std::size_t end = name.rfind('.');
  return "blk.0." + gguf_stems.at(name.substr(prefix.size(), end - prefix.size())) + name.substr(end);
}

/// The rows of the tiny model's heads (of 4 rows) in llama.cpp's order: 0, 2, 1, 3.
std::vector<float> interleaved(const TestTensor& tensor) {
  std::vector<float> values = tensor.values;
  const std::size_t columns = 8;
  for (std::size_t row = 1; row + 1 < static_cast<std::size_t>(tensor.shape[0]); row += 4) {
    for (std::size_t i = 0; i < columns; ++i) {
      std::swap(values[row * columns + i], values[(row + 1) * columns + i]);
    }
  }
  return values;
}

/// The tiny model as llama.cpp stores it.
GgufImage tiny_gguf(const std::vector<TestTensor>& tensors) {
  GgufImage image;
  image.string("general.architecture", "llama")
      .u32("llama.vocab_size", 16)
      .u32("llama.embedding_length", 8)
      .u32("llama.feed_forward_length", 12)
      .u32("llama.block_count", 1)
      .u32("llama.attention.head_count", 2)
      .u32("llama.attention.head_count_kv", 1)
      .u32("llama.context_length", 64)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-6F)
      .string("tokenizer.chat_template", "{{ messages }}");
  for (const TestTensor& tensor : tensors) {
    const bool is_rotary =
        tensor.name.find("q_proj") != std::string::npos || tensor.name.find("k_proj") != std::string::npos;
    image.tensor(gguf_name(tensor.name), {tensor.shape.rbegin(), tensor.shape.rend()}, 0,
                 test::raw_floats(is_rotary ? interleaved(tensor) : tensor.values));
  }
  return image;
}

TEST_CASE("a model reads the same from GGUF and safetensors") {
  const TemporaryFolder folder;
  const std::vector<TestTensor> tensors = tiny_tensors();
  write_model(folder, tiny_config(), tensors);
  const ModelFiles directory = opened(folder.path());
  const ModelFiles gguf = opened(folder.write("model.gguf", tiny_gguf(tensors).build()));
  CHECK(gguf.weights->names() == directory.weights->names());
  CHECK(gguf.config.tie_word_embeddings == directory.config.tie_word_embeddings);
  CHECK(gguf.config.head_dim == directory.config.head_dim);
  CHECK(gguf.tokenizer == nullptr);
  CHECK(gguf.chat_template == "{{ messages }}");
  for (const ExpectedTensor& tensor : expected_tensors(directory.config)) {
    CAPTURE(tensor.name);
    CHECK(read_all(*gguf.weights, tensor) == read_all(*directory.weights, tensor));
  }
}

TEST_CASE("a GGUF file without a head has a tied one") {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = tiny_tensors();
  remove(tensors, "lm_head.weight");
  CHECK(opened(folder.write("model.gguf", tiny_gguf(tensors).build())).config.tie_word_embeddings);
}

TEST_CASE("a GGUF file that lacks a tensor or has one for other heads is refused by name") {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = tiny_tensors();
  SECTION("missing") {
    remove(tensors, "model.norm.weight");
    const fs::path path = folder.write("model.gguf", tiny_gguf(tensors).build());
    CHECK(error_of(open_model(path)) == path.string() + ": tensor \"model.norm.weight\": missing, expected shape [8]");
  }
  SECTION("for other heads") {
    TestTensor& queries = find(tensors, "model.layers.0.self_attn.q_proj.weight");
    queries.shape = {6, 8};
    queries.values.resize(48);
    GgufImage image = tiny_gguf(tensors);
    const fs::path path = folder.write("model.gguf", image.build());
    CHECK(error_of(open_model(path)) ==
          path.string() + ": tensor \"blk.0.attn_q.weight\": expected rows for 2 heads, found F32 [6, 8]");
  }
}

/// Where the README's commands put the models.
fs::path cached_model(const std::string& name) {
  const char* cache = std::getenv("TROUPE_CACHE");
  const char* home = std::getenv("HOME");
  return (cache != nullptr ? fs::path(cache) : fs::path(home == nullptr ? "" : home) / ".cache/troupe") / "models" /
         name;
}

/// Sum of (2 i + 1) times the bits of element i, as tests/golden/gguf/record.py computes it.
std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += std::uint64_t{std::bit_cast<std::uint32_t>(values[i])} * (2 * i + 1);
  }
  return sum;
}

TEST_CASE("SmolLM2 opens from its GGUF file with the weights that transformers reads") {
  const fs::path path = cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!fs::exists(path)) {
    WARN("skipped: there is no " << path.string());
    return;
  }
  const ModelFiles files = opened(path);
  CHECK(files.config.vocab_size == 49152);
  CHECK(files.config.hidden_size == 576);
  CHECK(files.config.intermediate_size == 1536);
  CHECK(files.config.num_hidden_layers == 30);
  CHECK(files.config.num_attention_heads == 9);
  CHECK(files.config.num_key_value_heads == 3);
  CHECK(files.config.head_dim == 64);
  CHECK(files.config.max_position_embeddings == 8192);
  CHECK(files.config.rope.theta == 100000.0);
  CHECK(files.config.tie_word_embeddings);
  CHECK(files.config.bos_token_id == 1);
  CHECK(files.config.eos_token_ids == std::vector<TokenId>{2});
  CHECK(files.warnings.empty());

  const auto recorded = nlohmann::json::parse(test::read_file(std::string(TROUPE_TEST_DATA) + "/gguf/smollm2.json"));
  for (const ExpectedTensor& tensor : expected_tensors(files.config)) {
    CAPTURE(tensor.name);
    CHECK(recorded.at(tensor.name).at("shape") == tensor.shape);
    CHECK(recorded.at(tensor.name).at("hash") == std::to_string(hash_of(read_all(*files.weights, tensor))));
  }

  REQUIRE(files.tokenizer != nullptr);
  CHECK(files.tokenizer->vocab_size() == 49152);
  REQUIRE(files.chat_template);
  CHECK_THAT(*files.chat_template, Catch::Contains("<|im_start|>"));
}

}  // namespace
}  // namespace troupe
