#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "model/gguf_file.hpp"
#include "model/gguf_weights.hpp"
#include "model/safetensors.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using test::GgufImage;
using test::raw_floats;
using test::safetensors_image;
using test::TemporaryFolder;
using test::TestTensor;
using Shape = std::vector<std::int64_t>;

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

std::shared_ptr<const FileWeights> open_with(const TemporaryFolder& folder, const std::vector<TestTensor>& tensors) {
  folder.write("model.safetensors", safetensors_image(tensors));
  auto weights = open_safetensors(folder.path());
  REQUIRE(weights);
  return *weights;
}

TEST_CASE("a tensor is read whole and by rows") {
  const TemporaryFolder folder;
  const auto weights = open_with(folder, {{"a", {3, 2}, counted(6)}});
  std::vector<float> all(6);
  REQUIRE(weights->read_f32("a", Shape{3, 2}, all));
  CHECK(all == counted(6));
  std::vector<std::uint16_t> rounded(6);
  REQUIRE(weights->read_bf16("a", Shape{3, 2}, rounded));
  CHECK(rounded[2] == std::bit_cast<std::uint32_t>(3.0F) >> 16U);
  std::vector<float> rows(6);
  REQUIRE(weights->read_rows_f32("a", std::vector<std::int32_t>{2, 0, 2}, rows));
  CHECK(rows == std::vector<float>{5, 6, 1, 2, 5, 6});
}

TEST_CASE("a tensor larger than a piece is read whole") {
  const TemporaryFolder folder;
  const std::size_t size = (std::size_t{1} << 17U) + 5;
  const auto weights = open_with(folder, {{"a", {static_cast<std::int64_t>(size)}, counted(size)}, {"b", {1}, {7.0F}}});
  std::vector<float> all(size);
  // Twice, because the memory of what was read is given back.
  for (int i = 0; i < 2; ++i) {
    std::ranges::fill(all, 0.0F);
    REQUIRE(weights->read_f32("a", Shape{static_cast<std::int64_t>(size)}, all));
    CHECK(all == counted(size));
  }
  std::vector<std::uint16_t> rounded(size);
  REQUIRE(weights->read_bf16("a", Shape{static_cast<std::int64_t>(size)}, rounded));
  CHECK(rounded[1 << 17U] == std::bit_cast<std::uint32_t>(131072.0F) >> 16U);
}

TEST_CASE("reading names file and tensor and what was expected and found") {
  const TemporaryFolder folder;
  folder.write("model.safetensors",
               safetensors_image(R"({"a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
                                     "ids": {"dtype": "I64", "shape": [1, 1], "data_offsets": [8, 16]}})",
                                 std::string(16, '\0')));
  const auto weights = *open_safetensors(folder.path());
  const std::string file = (folder.path() / "model.safetensors").string();
  std::vector<float> out(2);
  CHECK(weights->read_f32("a", Shape{2}, out).error().message ==
        file + ": tensor \"a\": expected shape [2], found [1, 2]");
  CHECK(weights->read_f32("b", Shape{2}, out).error().message ==
        folder.path().string() + ": tensor \"b\": missing, expected shape [2]");
  CHECK(weights->read_f32("ids", Shape{1, 1}, out).error().message ==
        file + ": tensor \"ids\": expected a floating-point type, found I64");
  CHECK(weights->read_f32("ids", Shape{1, 1}, out).error().code == ErrorCode::unsupported);
  CHECK(weights->read_f32("a", Shape{1, 2}, std::span(out).first(1)).error().code == ErrorCode::internal);
  CHECK(weights->tensor("b").error().code == ErrorCode::malformed_file);
  CHECK_FALSE(weights->read_rows_f32("a", std::vector<std::int32_t>{1}, out));
  CHECK_FALSE(weights->read_rows_f32("a", std::vector<std::int32_t>{-1}, out));
  CHECK_FALSE(weights->read_rows_f32("a", std::vector<std::int32_t>{0, 0}, out));
  CHECK_FALSE(weights->read_rows_f32("ids", std::vector<std::int32_t>{0}, std::span(out).first(1)));
  CHECK_FALSE(weights->read_rows_f32("b", std::vector<std::int32_t>{0}, out));
}

TEST_CASE("GGUF names become the names of Hugging Face") {
  CHECK(hugging_face_name("token_embd.weight") == "model.embed_tokens.weight");
  CHECK(hugging_face_name("output.weight") == "lm_head.weight");
  CHECK(hugging_face_name("blk.12.attn_q.bias") == "model.layers.12.self_attn.q_proj.bias");
  CHECK(hugging_face_name("blk.0.ffn_norm.weight") == "model.layers.0.post_attention_layernorm.weight");
  for (const std::string name : {"", "blk.", "blk.3", "blk..", "blk.3.", "rope_freqs.weight", "attn_q.weight", "blk"}) {
    CHECK(hugging_face_name(name) == name);
  }
}

/// What llama.cpp's converter does to the rows of a rotary projection: of each head, row s * half + i goes to 2 i + s.
std::vector<float> interleave(const std::vector<float>& values, std::size_t heads, std::size_t head_dim,
                              std::size_t columns) {
  std::vector<float> out(values.size());
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t s = 0; s < 2; ++s) {
      for (std::size_t i = 0; i < head_dim / 2; ++i) {
        const std::size_t from = (head * head_dim + s * head_dim / 2 + i) * columns;
        const std::size_t to = (head * head_dim + 2 * i + s) * columns;
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), columns,
                    out.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
  }
  return out;
}

std::shared_ptr<const FileWeights> open_gguf_with(const TemporaryFolder& folder, const GgufImage& image,
                                                  const ModelConfig& config) {
  const auto path = folder.write("model.gguf", image.build());
  auto file = MappedFile::open(path);
  REQUIRE(file);
  auto parsed = parse_gguf(file->bytes());
  REQUIRE(parsed);
  auto weights = make_gguf_weights(path, std::move(*file), *parsed, config);
  REQUIRE(weights);
  return *weights;
}

TEST_CASE("the rotary rows that llama.cpp interleaves come back in order") {
  const TemporaryFolder folder;
  ModelConfig config;
  config.num_attention_heads = 3;
  config.num_key_value_heads = 2;
  const std::vector<float> queries = counted(36);
  const std::vector<float> bias = counted(12);
  GgufImage image;
  image.tensor("blk.0.attn_q.weight", {2, 18}, 0, raw_floats(interleave(queries, 3, 6, 2)))
      .tensor("blk.0.attn_k.bias", {12}, 0, raw_floats(interleave(bias, 2, 6, 1)))
      .tensor("blk.0.attn_v.bias", {12}, 0, raw_floats(bias));
  SECTION("for llama") {
    config.model_type = "llama";
    const auto weights = open_gguf_with(folder, image, config);
    std::vector<float> out(queries.size());
    REQUIRE(weights->read_f32("model.layers.0.self_attn.q_proj.weight", Shape{18, 2}, out));
    CHECK(out == queries);
    REQUIRE(weights->read_rows_f32("model.layers.0.self_attn.q_proj.weight", std::vector<std::int32_t>{1, 9},
                                   std::span(out).first(4)));
    CHECK(std::vector(out.begin(), out.begin() + 4) == std::vector<float>{3, 4, 19, 20});
    std::vector<std::uint16_t> rounded(queries.size());
    REQUIRE(weights->read_bf16("model.layers.0.self_attn.q_proj.weight", Shape{18, 2}, rounded));
    CHECK(rounded[3] == std::bit_cast<std::uint32_t>(4.0F) >> 16U);
    out.resize(12);
    REQUIRE(weights->read_f32("model.layers.0.self_attn.k_proj.bias", Shape{12}, out));
    CHECK(out == bias);
    REQUIRE(weights->read_f32("model.layers.0.self_attn.v_proj.bias", Shape{12}, out));
    CHECK(out == bias);
    CHECK(weights->tensor("model.layers.0.self_attn.q_proj.weight")->interleaved_heads == 3);
  }
  SECTION("but for qwen2 they lie in order") {
    config.model_type = "qwen2";
    const auto weights = open_gguf_with(folder, image, config);
    std::vector<float> out(queries.size());
    REQUIRE(weights->read_f32("model.layers.0.self_attn.q_proj.weight", Shape{18, 2}, out));
    CHECK(out == interleave(queries, 3, 6, 2));
  }
}

TEST_CASE("quantized rows are read one by one") {
  const TemporaryFolder folder;
  const std::string blocks = test::read_file(std::string(TROUPE_TEST_DATA) + "/gguf/Q4_1.blocks");
  const auto weights = open_gguf_with(folder, GgufImage().tensor("token_embd.weight", {64, 32}, 3, blocks), {});
  std::vector<float> all(2048);
  REQUIRE(weights->read_f32("model.embed_tokens.weight", Shape{32, 64}, all));
  CHECK(raw_floats(all) == test::read_file(std::string(TROUPE_TEST_DATA) + "/gguf/Q4_1.f32"));
  std::vector<float> row(64);
  REQUIRE(weights->read_rows_f32("model.embed_tokens.weight", std::vector<std::int32_t>{31}, row));
  CHECK(row == std::vector(all.end() - 64, all.end()));
}

}  // namespace
}  // namespace troupe
