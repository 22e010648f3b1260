#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "model/error_text.hpp"
#include "model/safetensors.hpp"
#include "model/safetensors_header.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using test::bytes_of;
using test::raw;
using test::safetensors_image;
using test::TemporaryFolder;
using test::TestTensor;

struct HeaderCase {
  std::string what;
  std::string image;
  /// What the message must contain.
  std::string expected;
};

std::string one_tensor(const std::string& fields) { return R"({"a": {)" + fields + "}}"; }

std::vector<HeaderCase> malformed_headers() {
  const std::string data(16, '\0');
  const auto with = [&data](const std::string& header) { return safetensors_image(header, data); };
  const auto offsets = [&with](const std::string& text) {
    return with(one_tensor(R"("dtype": "F32", "shape": [4], "data_offsets": )" + text));
  };
  const auto shape = [&with](const std::string& text) {
    return with(one_tensor(R"("dtype": "F32", "data_offsets": [0, 16], "shape": )" + text));
  };
  const std::string half = R"({"dtype": "F32", "shape": [2], "data_offsets": )";
  return {
      {"nothing", "", "at least 8 bytes, found 0"},
      {"only part of the length", std::string(7, '\0'), "at least 8 bytes, found 7"},
      {"length 0", raw(std::uint64_t{0}) + "{}", "found nothing"},
      {"length 7 of a longer header", raw(std::uint64_t{7}) + R"({"a": {}})", "not valid JSON at byte 1"},
      {"length 2^63", raw(std::uint64_t{1} << 63U) + "{}", "at most 2, found 9223372036854775808"},
      {"length 2^64 - 1", raw(~std::uint64_t{0}) + "{}", "at most 2, found 18446744073709551615"},
      {"length one more than the file has", raw(std::uint64_t{3}) + "{}", "at most 2, found 3"},
      {"not JSON", with("{hello}"), "not valid JSON"},
      {"an array", with("[1, 2]"), "expected a JSON object, found \"[\""},
      {"a number", with("5"), "expected a JSON object"},
      {"something behind the object", with("{} {}"), "not valid JSON"},
      {"invalid UTF-8", with("{\"\xff\": {}}"), "not valid JSON"},
      {"deep nesting", with(R"({"a": )" + std::string(1000000, '[')), "expected an object, found an array"},
      {"deep nesting of objects", with(R"({"a": {"shape": {"b": {)"), "shape: expected an array, found an object"},
      {"a tensor twice", with(R"({"a": )" + half + R"([0, 8]}, "a": )" + half + "[8, 16]}}"), "\"a\": occurs twice"},
      {"metadata twice", with(R"({"__metadata__": {}, "__metadata__": {}})"), "occurs twice"},
      {"metadata that is a number", with(R"({"__metadata__": 5})"), "expected an object, found 5"},
      {"metadata with a number", with(R"({"__metadata__": {"a": 5}})"), "expected strings, found 5"},
      {"metadata with an object", with(R"({"__metadata__": {"a": {}}})"), "expected strings, found an object"},
      {"a tensor that is null", with(R"({"a": null})"), "tensor \"a\": expected an object, found null"},
      {"a field twice", with(one_tensor(R"("dtype": "F32", "dtype": "F16")")), "\"dtype\" occurs twice"},
      {"an unknown field", with(one_tensor(R"("size": 5)")), "unknown key \"size\""},
      {"no dtype", with(one_tensor(R"("shape": [4], "data_offsets": [0, 16])")), "\"dtype\" is missing"},
      {"no shape", with(one_tensor(R"("dtype": "F32", "data_offsets": [0, 16])")), "\"shape\" is missing"},
      {"no offsets", with(one_tensor(R"("dtype": "F32", "shape": [4])")), "\"data_offsets\" is missing"},
      {"an unknown dtype", with(one_tensor(R"("dtype": "F33", "shape": [4], "data_offsets": [0, 16])")),
       "unknown dtype \"F33\""},
      {"a dtype that is a number", with(one_tensor(R"("dtype": 32)")), "dtype: expected a string, found 32"},
      {"offsets the wrong way round", offsets("[8, 0]"), "found [8, 0]"},
      {"one offset", offsets("[0]"), "expected two numbers, found 1"},
      {"three offsets", offsets("[0, 1, 2]"), "expected two numbers, found more"},
      {"a negative offset", offsets("[-8, 0]"), "data_offsets: expected numbers that are not negative, found -8"},
      {"a fraction as offset", offsets("[0, 16.0]"), "found \"16.0\""},
      {"offsets that are a string", offsets("\"0\""), "data_offsets: expected an array, found \"0\""},
      {"offsets beyond the file", offsets("[0, 32]"), "[0, 16], the data of the file, found [0, 32]"},
      {"offsets near 2^64", offsets("[18446744073709551600, 18446744073709551615]"), "the data of the file"},
      {"an offset above 2^64", offsets("[0, 18446744073709551616]"), "expected numbers that are not negative"},
      {"a hole at the start", offsets("[8, 16]"), "expected 16 bytes for F32 [4], found 8"},
      {"a dimension of -1", shape("[-1]"), "shape: expected numbers from 0 to 2^63 - 1, found -1"},
      {"a dimension of 1.5", shape("[1.5]"), "found \"1.5\""},
      {"a dimension of 2^40", shape("[1099511627776]"), "expected 4398046511104 bytes"},
      {"a dimension of 2^64", shape("[18446744073709551616]"), "shape: expected numbers"},
      {"dimensions whose product overflows", shape("[4294967296, 4294967296, 4]"), "expected too many bytes"},
      {"dimensions whose product overflows to the right number", shape("[4611686018427387905, 4]"),
       "expected too many bytes"},
      {"too many dimensions", shape("[1, 1, 1, 1, 1, 1, 1, 1, 1]"), "at most 8 dimensions"},
      {"a scalar of 16 bytes", shape("[]"), "expected 4 bytes for F32 [], found 16"},
      {"too many bytes for the shape", shape("[3]"), "expected 12 bytes for F32 [3], found 16"},
      {"overlapping tensors", with(R"({"a": )" + half + R"([0, 8]}, "b": )" + half + "[4, 12]}}"),
       "tensor \"b\": overlaps the tensor before it: expected to begin at 8, found 4"},
      {"a hole between tensors",
       safetensors_image(R"({"a": )" + half + R"([0, 8]}, "b": )" + half + "[12, 20]}}", std::string(20, '\0')),
       "tensor \"b\": leaves a hole after the tensor before it: expected to begin at 8, found 12"},
      {"a hole at the end", with(R"({"a": )" + half + "[0, 8]}}"), "expected 8 bytes of data, found 16"},
  };
}

std::string error_of(const Result<std::vector<SafetensorsEntry>>& result) {
  return result ? "no error" : result.error().message;
}

TEST_CASE("a malformed safetensors header is refused with what was expected and found") {
  for (const HeaderCase& header : malformed_headers()) {
    CAPTURE(header.what);
    const auto result = parse_safetensors_header(bytes_of(header.image));
    CHECK_THAT(error_of(result), Catch::Contains(header.expected));
    CHECK((!result && result.error().code == ErrorCode::malformed_file));
  }
}

TEST_CASE("a safetensors file that ends anywhere too early is refused") {
  const std::vector<TestTensor> tensors = {{"first", {2, 3}, std::vector<float>(6, 1.0F)}, {"second", {}, {2.0F}}};
  const std::string image = safetensors_image(tensors);
  REQUIRE(parse_safetensors_header(bytes_of(image)));
  for (std::size_t size = 0; size < image.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(parse_safetensors_header(bytes_of(std::string_view(image).substr(0, size))));
  }
}

TEST_CASE("a safetensors header may end in spaces and hold empty tensors and types without use") {
  const std::string header =
      R"({"empty": {"dtype": "BF16", "shape": [0, 7], "data_offsets": [8, 8]},
          "ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
          "nibbles": {"dtype": "F4", "shape": [2, 3], "data_offsets": [8, 11]}}    )";
  const std::string image = safetensors_image(header, std::string(11, '\0'));
  const auto entries = parse_safetensors_header(bytes_of(image));
  REQUIRE(entries);
  std::map<std::string, SafetensorsEntry> by_name;
  for (const SafetensorsEntry& entry : *entries) {
    by_name[entry.name] = entry;
  }
  CHECK(by_name["empty"].dtype == DType::bf16);
  CHECK(by_name["empty"].shape == std::vector<std::int64_t>{0, 7});
  CHECK(by_name["ids"].dtype == DType::other);
  CHECK(by_name["ids"].type_name == "I64");
  CHECK(by_name["ids"].begin == 8 + header.size());
  CHECK(by_name["nibbles"].end == image.size());
}

/// A folder with tensors "a" and "b" in two shards and an index.
void write_shards(const TemporaryFolder& folder) {
  folder.write("model-1.safetensors", safetensors_image(std::vector<TestTensor>{{"a", {2}, {1.0F, 2.0F}}}));
  folder.write("model-2.safetensors",
               safetensors_image(std::vector<TestTensor>{{"b", {1}, {3.0F}}, {"c", {1}, {4.0F}}}));
  folder.write("model.safetensors.index.json",
               R"({"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
}

std::string error_of(const Result<std::shared_ptr<const FileWeights>>& result) {
  return result ? "no error" : result.error().message;
}

TEST_CASE("an index decides which tensors of which files are read") {
  const TemporaryFolder folder;
  write_shards(folder);
  folder.write("model.safetensors", safetensors_image(std::vector<TestTensor>{{"a", {1}, {9.0F}}, {"d", {1}, {9.0F}}}));
  const auto weights = open_safetensors(folder.path());
  REQUIRE(weights);
  CHECK((*weights)->names() == std::vector<std::string>{"a", "b"});
  std::vector<float> values(2);
  REQUIRE((*weights)->read_f32("a", std::vector<std::int64_t>{2}, values));
  CHECK(values == std::vector<float>{1.0F, 2.0F});
}

TEST_CASE("a tensor in two shards is read from the one that the index names") {
  const TemporaryFolder folder;
  write_shards(folder);
  folder.write("model-2.safetensors",
               safetensors_image(std::vector<TestTensor>{{"a", {2}, {8.0F, 9.0F}}, {"b", {1}, {3.0F}}}));
  const auto weights = open_safetensors(folder.path());
  REQUIRE(weights);
  std::vector<float> values(2);
  REQUIRE((*weights)->read_f32("a", std::vector<std::int64_t>{2}, values));
  CHECK(values == std::vector<float>{1.0F, 2.0F});
}

TEST_CASE("a shard that is missing or empty or lacks a tensor is refused by name") {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::filesystem::path shard = folder.path() / "model-2.safetensors";
  SECTION("missing") {
    std::filesystem::remove(shard);
    const auto result = open_safetensors(folder.path());
    CHECK(error_of(result) == shard.string() + ": No such file or directory");
    CHECK(result.error().code == ErrorCode::io_error);
  }
  SECTION("empty") {
    folder.write("model-2.safetensors", "");
    CHECK(error_of(open_safetensors(folder.path())) == shard.string() + ": expected at least 8 bytes, found 0");
  }
  SECTION("without the tensor") {
    folder.write("model-2.safetensors", safetensors_image(std::vector<TestTensor>{{"c", {1}, {4.0F}}}));
    CHECK(error_of(open_safetensors(folder.path())) ==
          shard.string() + ": tensor \"b\": missing, the index says that it is in this file");
  }
}

TEST_CASE("an index that names anything outside its folder is refused before a file is opened") {
  const TemporaryFolder outer;
  outer.write("x.safetensors", safetensors_image(std::vector<TestTensor>{{"a", {1}, {1.0F}}}));
  const std::string absolute = (outer.path() / "x.safetensors").string();
  const std::vector<std::string> names = {
      "../x.safetensors", absolute, "a/../../x.safetensors", "", ".", "./x", "..", "a/", "x\\u0000y"};
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto index = outer.write("model/model.safetensors.index.json", R"({"weight_map": {"a": ")" + name + "\"}}");
    const auto result = open_safetensors(outer.path() / "model");
    CHECK_THAT(
        error_of(result),
        Catch::StartsWith(index.string() + ": /weight_map/a: expected the name of a file in the same directory"));
  }
}

TEST_CASE("an index that is malformed is refused") {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"weight_map": {"a": 5}})", "/weight_map/a: expected a string, found 5"},
      {R"({"weight_map": []})", "/weight_map: expected an object, found array"},
      {R"({})", "/weight_map: expected an object, found nothing"},
      {R"([])", "/: expected an object, found array"},
      {R"({"weight_map": {"a": "model-1.safetensors", "a": "model-2.safetensors"}})", "the key \"a\" occurs twice"},
      {"", "not valid JSON"},
      {std::string(1000000, '['), "levels of nesting"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(expected);
    folder.write("model.safetensors.index.json", text);
    CHECK_THAT(error_of(open_safetensors(folder.path())),
               Catch::Contains("model.safetensors.index.json: ") && Catch::Contains(expected));
  }
}

TEST_CASE("a shard that is no regular file is refused without waiting for it") {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::filesystem::path shard = folder.path() / "model-2.safetensors";
  std::filesystem::remove(shard);
  SECTION("a folder") {
    std::filesystem::create_directory(shard);
    CHECK(error_of(open_safetensors(folder.path())) == shard.string() + ": expected a file, found a directory");
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(shard.c_str(), 0600) == 0);
    CHECK(error_of(open_safetensors(folder.path())) == shard.string() + ": not a regular file");
  }
}

TEST_CASE("symbolic links are followed as a download cache needs it") {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::filesystem::path shard = folder.path() / "model-2.safetensors";
  folder.write("blobs/b", test::read_file(shard));
  std::filesystem::remove(shard);
  std::filesystem::create_symlink("blobs/b", shard);
  CHECK(open_safetensors(folder.path()));
}

}  // namespace
}  // namespace troupe
