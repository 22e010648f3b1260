#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_config.hpp"
#include "model/gguf_file.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using test::bytes_of;
using test::GgufImage;
using test::raw;

std::string error_of(const Result<GgufFile>& result) { return result ? "no error" : result.error().message; }

GgufImage with_tensor(const std::vector<std::uint64_t>& dimensions, std::uint32_t type, std::uint64_t offset) {
  return GgufImage().tensor("first", {8}, 0, std::string(32, '\0')).tensor_info("t", dimensions, type, offset);
}

struct FileCase {
  std::string what;
  std::string image;
  /// What the message must contain.
  std::string expected;
  ErrorCode code = ErrorCode::malformed_file;
};

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62U;

std::vector<FileCase> malformed_files() {
  const auto array = [](std::uint32_t type, std::uint64_t count) {
    return GgufImage().raw_value("k", 9, raw(type) + raw(count)).build();
  };
  std::string big_endian = GgufImage(0x03000000).build();
  return {
      {"nothing", "", "expected a GGUF file"},
      {"another file", "PK\3\4 and more", "expected a GGUF file"},
      {"version 1", GgufImage(1).build(), "expected GGUF version 2 or 3 (little-endian), found 1",
       ErrorCode::unsupported},
      {"another byte order", big_endian, "found 50331648", ErrorCode::unsupported},
      {"2^62 tensors", GgufImage().build(kHuge, 0),
       "tensor \"\": expected 4 bytes at byte 32, found 0 before the end of the file"},
      {"2^64 - 1 values", GgufImage().build(0, ~std::uint64_t{0}),
       "metadata \"\": expected 4 bytes at byte 32, found 0 before the end of the file"},
      {"a key longer than the file", GgufImage().raw_value("", 4, "").build().replace(24, 8, raw(kHuge)),
       "expected 4611686018427387904 bytes at byte 32"},
      {"a string longer than the file", GgufImage().raw_value("k", 8, raw(~std::uint64_t{0})).build(),
       "metadata \"k\": expected 18446744073709551615 bytes"},
      {"an unknown value type", GgufImage().raw_value("k", 13, raw(kHuge)).build(), "unknown value type 13"},
      {"a key twice", GgufImage().u32("k", 1).u32("k", 1).build(), "metadata \"k\": occurs twice"},
      {"an array of 2^62 numbers", array(4, kHuge), "an array of 4611686018427387904 elements does not fit"},
      {"an array whose bytes overflow", array(10, (std::uint64_t{1} << 61U) + 1), "does not fit"},
      {"an array of 2^62 strings", array(8, kHuge), "does not fit"},
      {"an array of an unknown type", array(99, 0), "unknown element type 99"},
      {"an array of arrays", array(9, 1), "arrays of arrays are not supported", ErrorCode::unsupported},
      {"a string in an array longer than the file",
       GgufImage().raw_value("k", 9, raw(std::uint32_t{8}) + raw(std::uint64_t{1}) + raw(kHuge)).build(),
       "metadata \"k\": expected 4611686018427387904 bytes"},
      {"an alignment of 0", GgufImage().u32("general.alignment", 0).build(),
       "expected a power of two below 2^32, found 0"},
      {"an alignment of 24", GgufImage().u32("general.alignment", 24).build(), "found 24"},
      {"an alignment of another type", GgufImage().string("general.alignment", "32").build(), "found another type"},
      {"an alignment of 2^63", GgufImage().raw_value("general.alignment", 10, raw(std::uint64_t{1} << 63U)).build(),
       "expected a power of two"},
      {"five dimensions", with_tensor({1, 1, 1, 1, 1}, 0, 32).build(),
       "tensor \"t\": expected at most 4 dimensions, found 5"},
      {"a dimension of 2^63", with_tensor({std::uint64_t{1} << 63U}, 0, 32).build(), "expected dimensions below 2^63"},
      {"a product that overflows", with_tensor({kHuge, 4}, 0, 32).build(), "is too large"},
      {"a product that overflows to 0", with_tensor({std::uint64_t{1} << 32U, std::uint64_t{1} << 32U}, 0, 32).build(),
       "is too large"},
      {"a number of bytes that overflows", with_tensor({kHuge}, 0, 32).build(), "is too large"},
      {"rows of half a block", with_tensor({16}, 2, 32).build(), "rows that are not whole blocks of Q4_0"},
      {"an unknown tensor type", with_tensor({8}, 99, 32).build(), "found type 99", ErrorCode::unsupported},
      {"a tensor type that is not supported", with_tensor({256}, 10, 32).build(),
       "expected one of the types F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16, found Q2_K",
       ErrorCode::unsupported},
      {"an offset between alignments", with_tensor({1}, 0, 4).build(),
       "expected a multiple of the alignment (32), found 4"},
      {"an offset beyond the file", with_tensor({1}, 0, 64).build(),
       "expected 4 bytes at offset 64, found 32 bytes of data"},
      {"an offset near 2^64", with_tensor({8}, 0, ~std::uint64_t{0} - 31).build(),
       "tensor \"t\": expected 32 bytes at offset"},
      {"a tensor longer than the file", with_tensor({9}, 0, 0).build(), "expected 36 bytes at offset 0, found 32"},
      {"overlapping tensors", with_tensor({1}, 0, 0).build(), "overlaps"},
      {"a tensor twice", GgufImage().tensor("t", {1}, 0, "abcd").tensor("t", {1}, 0, "abcd").build(),
       "tensor \"t\": occurs twice"},
  };
}

TEST_CASE("a malformed GGUF file is refused with what was expected and found") {
  for (const FileCase& file : malformed_files()) {
    CAPTURE(file.what);
    const Result<GgufFile> result = parse_gguf(bytes_of(file.image));
    CHECK_THAT(error_of(result), Catch::Contains(file.expected));
    CHECK((!result && result.error().code == file.code));
  }
}

TEST_CASE("a GGUF file that ends anywhere too early is refused") {
  const std::string image = GgufImage()
                                .string("general.architecture", "llama")
                                .strings("tokens", {"a", "", "ccc"})
                                .u32("n", 5)
                                .tensor("t", {2, 3}, 0, std::string(24, 'x'))
                                .build();
  REQUIRE(parse_gguf(bytes_of(image)));
  for (std::size_t size = 0; size < image.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(parse_gguf(bytes_of(std::string_view(image).substr(0, size))));
  }
}

TEST_CASE("values and tensors of a GGUF file are read") {
  for (const std::uint32_t version : {2U, 3U}) {
    const std::string image = GgufImage(version)
                                  .raw_value("u8", 0, raw(std::uint8_t{200}))
                                  .raw_value("i8", 1, raw(std::int8_t{-2}))
                                  .raw_value("u16", 2, raw(std::uint16_t{60000}))
                                  .raw_value("i16", 3, raw(std::int16_t{-300}))
                                  .u32("u32", 4000000000U)
                                  .raw_value("i32", 5, raw(std::int32_t{-5}))
                                  .f32("f32", 0.5F)
                                  .boolean("bool", true)
                                  .string("string", "text")
                                  .strings("array", {"a", "bc"})
                                  .raw_value("u64", 10, raw(~std::uint64_t{0}))
                                  .raw_value("i64", 11, raw(std::int64_t{-7}))
                                  .raw_value("f64", 12, raw(0.25))
                                  .tensor("t", {4, 2}, 0, std::string(32, 'x'))
                                  .build();
    const Result<GgufFile> file = parse_gguf(bytes_of(image));
    REQUIRE(file);
    const auto& values = file->metadata;
    CHECK(std::get<std::int64_t>(values.at("u8")) == std::int64_t{200});
    CHECK(std::get<std::int64_t>(values.at("i8")) == std::int64_t{-2});
    CHECK(std::get<std::int64_t>(values.at("u16")) == std::int64_t{60000});
    CHECK(std::get<std::int64_t>(values.at("i16")) == std::int64_t{-300});
    CHECK(std::get<std::int64_t>(values.at("u32")) == std::int64_t{4000000000});
    CHECK(std::get<std::int64_t>(values.at("i32")) == std::int64_t{-5});
    CHECK(std::get<double>(values.at("f32")) == 0.5);
    CHECK(std::get<bool>(values.at("bool")) == true);
    CHECK(std::get<std::string_view>(values.at("string")) == std::string_view("text"));
    CHECK(std::get<GgufArray>(values.at("array")).count == 2);
    CHECK(std::get<std::uint64_t>(values.at("u64")) == ~std::uint64_t{0});
    CHECK(std::get<std::int64_t>(values.at("i64")) == std::int64_t{-7});
    CHECK(std::get<double>(values.at("f64")) == 0.25);
    CHECK(file->tensors.at("t").shape == std::vector<std::int64_t>{2, 4});
    CHECK(file->tensors.at("t").bytes.size() == 32);
  }
}

TEST_CASE("the data of a GGUF file begins at the alignment that it names") {
  std::string image = GgufImage().u32("general.alignment", 64).tensor_info("t", {1}, 0, 64).build();
  image.resize((image.size() + 63) / 64 * 64 + 64);
  image += raw(2.5F);
  const Result<GgufFile> file = parse_gguf(bytes_of(image));
  REQUIRE(file);
  CHECK(file->tensors.at("t").bytes.data() == bytes_of(image).data() + image.size() - 4);
}

/// Metadata of a small llama; the template's values come after and may not repeat a key.
GgufImage llama_metadata(std::uint32_t heads = 4) {
  GgufImage image;
  image.string("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 128)
      .u32("llama.embedding_length", 64)
      .u32("llama.feed_forward_length", 96)
      .u32("llama.attention.head_count", heads)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return image;
}

Result<ModelConfig> read_config(const GgufImage& image) {
  const std::string bytes = image.build();
  const Result<GgufFile> file = parse_gguf(bytes_of(bytes));
  REQUIRE(file);
  return read_gguf_config(*file);
}

std::string config_error(const GgufImage& image) {
  const Result<ModelConfig> config = read_config(image);
  return config ? "no error" : config.error().message;
}

TEST_CASE("a GGUF file's metadata and tensors give the configuration") {
  GgufImage image = llama_metadata();
  image.u32("llama.vocab_size", 100)
      .u32("llama.attention.head_count_kv", 2)
      .f32("llama.rope.freq_base", 100000.0F)
      .u32("llama.rope.dimension_count", 16)
      .u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.eot_token_id", 3)
      .u32("tokenizer.ggml.eom_token_id", 2)
      .tensor("blk.0.attn_q.bias", {64}, 0, std::string(256, '\0'));
  const Result<ModelConfig> config = read_config(image);
  REQUIRE(config);
  CHECK(config->model_type == "llama");
  CHECK(config->vocab_size == 100);
  CHECK(config->hidden_size == 64);
  CHECK(config->intermediate_size == 96);
  CHECK(config->num_hidden_layers == 2);
  CHECK(config->num_attention_heads == 4);
  CHECK(config->num_key_value_heads == 2);
  CHECK(config->head_dim == 16);
  CHECK(config->max_position_embeddings == 128);
  CHECK(config->rms_norm_eps == double{1e-5F});
  CHECK(config->rope.theta == 100000.0);
  CHECK(config->rope.scaling == RopeScalingType::none);
  CHECK(config->attention_bias);
  CHECK_FALSE(config->attention_output_bias);
  CHECK_FALSE(config->mlp_bias);
  CHECK(config->tie_word_embeddings);
  CHECK(config->layer_types == std::vector<AttentionType>(2, AttentionType::full));
  CHECK(config->bos_token_id == 1);
  CHECK(config->eos_token_ids == std::vector<TokenId>{2, 3});
}

TEST_CASE("a GGUF file without vocab_size has as many tokens as its vocabulary") {
  GgufImage image = llama_metadata();
  image.strings("tokenizer.ggml.tokens", {"a", "b", "c"}).tensor("output.weight", {1}, 0, "abcd");
  const Result<ModelConfig> config = read_config(image);
  REQUIRE(config);
  CHECK(config->vocab_size == 3);
  CHECK(config->num_key_value_heads == 4);
  CHECK(config->rope.theta == 10000.0);
  CHECK_FALSE(config->tie_word_embeddings);
}

TEST_CASE("GGUF metadata that a model cannot have is refused by key") {
  const auto base = [] { return llama_metadata().u32("llama.vocab_size", 100); };
  CHECK_THAT(config_error(GgufImage()), Catch::Contains("\"general.architecture\": missing"));
  CHECK_THAT(config_error(GgufImage().string("general.architecture", "mamba")),
             Catch::Contains("expected one of \"llama\", \"qwen2\", found \"mamba\""));
  CHECK_THAT(config_error(GgufImage().string("general.architecture", "llama")), Catch::Contains("missing"));
  CHECK_THAT(config_error(llama_metadata()), Catch::Contains("vocab_size: expected a number from 1"));
  CHECK_THAT(config_error(llama_metadata(0).u32("llama.vocab_size", 100)),
             Catch::Contains("num_attention_heads: expected a number from 1"));
  CHECK_THAT(config_error(base().u32("llama.attention.head_count_kv", 3)),
             Catch::Contains("expected a multiple of num_key_value_heads (3), found 4"));
  CHECK_THAT(
      config_error(base().raw_value("llama.attention.head_count_kv", 9, raw(std::uint32_t{4}) + raw(std::uint64_t{0}))),
      Catch::Contains("\"llama.attention.head_count_kv\": expected an integer from 0 to 2^31 - 1, found an array"));
  CHECK_THAT(config_error(base().u32("llama.expert_count", 8)),
             Catch::Contains("\"llama.expert_count\": not supported"));
  CHECK_THAT(config_error(base().f32("llama.logit_scale", 8)), Catch::Contains("\"llama.logit_scale\": not supported"));
  CHECK_THAT(config_error(base().u32("llama.rope.dimension_count", 8)),
             Catch::Contains("\"llama.rope.dimension_count\""));
  CHECK_THAT(config_error(base().f32("llama.rope.freq_base", std::numeric_limits<float>::quiet_NaN())),
             Catch::Contains("\"llama.rope.freq_base\": expected a finite number"));
  CHECK_THAT(config_error(base().string("llama.rope.scaling.type", "longrope")),
             Catch::Contains("expected \"none\", \"linear\" or \"yarn\", found \"longrope\""));
  CHECK_THAT(config_error(base().f32("llama.rope.scaling.factor", 0.0F)),
             Catch::Contains("expected a positive number"));
  CHECK_THAT(config_error(base().u32("tokenizer.ggml.eos_token_id", 100)), Catch::Contains("found 100"));
  CHECK_THAT(config_error(base().u32("llama.context_length_", 1).u32("tokenizer.ggml.bos_token_id", 4000000000U)),
             Catch::Contains("found 4000000000"));
}

TEST_CASE("the scalings of a GGUF file become those of the configuration") {
  const auto base = [] { return llama_metadata().u32("llama.vocab_size", 100); };
  const ModelConfig linear = *read_config(base().f32("llama.rope.scaling.factor", 4.0F));
  CHECK(linear.rope.scaling == RopeScalingType::linear);
  CHECK(linear.rope.factor == 4.0);
  const ModelConfig yarn = *read_config(base()
                                            .string("llama.rope.scaling.type", "yarn")
                                            .f32("llama.rope.scaling.factor", 2.0F)
                                            .u32("llama.rope.scaling.original_context_length", 64));
  CHECK(yarn.rope.scaling == RopeScalingType::yarn);
  CHECK(yarn.rope.original_max_position_embeddings == 64);
}

/// The factors that llama.cpp's converter stores for a llama3 scaling of the usual parameters.
std::vector<float> llama3_factors(double theta, double factor, std::size_t count) {
  std::vector<float> factors;
  for (std::size_t i = 0; i < count; ++i) {
    const double wavelength =
        2.0 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(count));
    const double smooth = (8192.0 / wavelength - 1.0) / 3.0;
    factors.push_back(static_cast<float>(wavelength < 2048.0   ? 1.0
                                         : wavelength > 8192.0 ? factor
                                                               : 1.0 / ((1.0 - smooth) / factor + smooth)));
  }
  return factors;
}

TEST_CASE("rotary factors of a GGUF file become the llama3 scaling they were made from") {
  const auto with_factors = [](const std::vector<float>& factors) {
    // Heads of 128, so that some frequencies are kept, some blended and some divided.
    return llama_metadata()
        .u32("llama.vocab_size", 100)
        .u32("llama.attention.key_length", 128)
        .f32("llama.rope.freq_base", 500000.0F)
        .tensor("rope_freqs.weight", {factors.size()}, 0, test::raw_floats(factors));
  };
  const Result<ModelConfig> config = read_config(with_factors(llama3_factors(500000.0, 32.0, 64)));
  REQUIRE(config);
  CHECK(config->rope.scaling == RopeScalingType::llama3);
  CHECK(config->rope.factor == 32.0);
  CHECK(config->rope.low_freq_factor == 1.0);
  CHECK(config->rope.high_freq_factor == 4.0);
  CHECK(config->rope.original_max_position_embeddings == 8192);

  CHECK(read_config(with_factors(std::vector<float>(64, 1.0F)))->rope.scaling == RopeScalingType::none);
  std::vector<float> others = llama3_factors(500000.0, 32.0, 64);
  others[30] *= 1.01F;
  CHECK_THAT(config_error(with_factors(others)), Catch::Contains("expected the factors of a llama3 scaling"));
  others[30] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(config_error(with_factors(others)), Catch::Contains("found nan"));
  CHECK_THAT(config_error(with_factors(std::vector<float>(32, 1.0F))),
             Catch::Contains("expected F32 [64], found F32 [32]"));
  CHECK_THAT(config_error(with_factors(llama3_factors(500000.0, 32.0, 64)).f32("llama.rope.scaling.factor", 4.0F)),
             Catch::Contains("together with a rope.scaling.type"));
}

TEST_CASE("the vocabulary of a GGUF file is read") {
  const auto vocabulary_of = [](const GgufImage& image) {
    const std::string bytes = image.build();
    return read_gguf_vocabulary(*parse_gguf(bytes_of(bytes)));
  };
  GgufImage image;
  image.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "smollm")
      .strings("tokenizer.ggml.tokens", {"a", "b", "ab"})
      .strings("tokenizer.ggml.merges", {"a b"})
      .raw_value("tokenizer.ggml.token_type", 9,
                 raw(std::uint32_t{5}) + raw(std::uint64_t{3}) + raw(3) + raw(1) + raw(1))
      .u32("tokenizer.ggml.eos_token_id", 2)
      .boolean("tokenizer.ggml.add_space_prefix", false);
  const auto vocabulary = vocabulary_of(image);
  REQUIRE(vocabulary);
  REQUIRE(*vocabulary);
  CHECK((*vocabulary)->model == "gpt2");
  CHECK((*vocabulary)->pre == "smollm");
  CHECK((*vocabulary)->tokens == std::vector<std::string>{"a", "b", "ab"});
  CHECK((*vocabulary)->merges == std::vector<std::string>{"a b"});
  CHECK((*vocabulary)->token_types == std::vector<std::int32_t>{3, 1, 1});
  CHECK((*vocabulary)->eos_token_id == 2);
  CHECK_FALSE((*vocabulary)->bos_token_id);
  CHECK_FALSE((*vocabulary)->add_bos_token);
  CHECK_FALSE((*vocabulary)->add_space_prefix);

  CHECK_FALSE(*vocabulary_of(GgufImage()));
  CHECK_FALSE(*vocabulary_of(GgufImage().string("tokenizer.ggml.model", "none")));
  const auto sentence_piece = vocabulary_of(
      GgufImage()
          .string("tokenizer.ggml.model", "llama")
          .strings("tokenizer.ggml.tokens", {"a"})
          .raw_value("tokenizer.ggml.scores", 9, raw(std::uint32_t{6}) + raw(std::uint64_t{1}) + raw(-2.0F)));
  CHECK((*sentence_piece)->scores == std::vector<float>{-2.0F});
  CHECK((*sentence_piece)->add_bos_token);
  CHECK(vocabulary_of(GgufImage().u32("tokenizer.ggml.tokens", 1)).error().message ==
        "metadata \"tokenizer.ggml.tokens\": expected an array of strings, found 1");
  CHECK_FALSE(
      vocabulary_of(GgufImage().raw_value("tokenizer.ggml.tokens", 9, raw(std::uint32_t{4}) + raw(std::uint64_t{0}))));
  CHECK_FALSE(vocabulary_of(GgufImage().strings("tokenizer.ggml.scores", {"1"})));
}

}  // namespace
}  // namespace troupe
