#include "model_files_support.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <unistd.h>

#include "model/dtype.hpp"
#include "model/error_text.hpp"
#include "model/expected_tensors.hpp"

namespace troupe::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe_files_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("no temporary folder");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::filesystem::path TemporaryFolder::write(const std::filesystem::path& name, std::string_view content) const {
  std::filesystem::path path = path_ / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string raw_floats(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT(*-reinterpret-cast)
}

std::string safetensors_image(std::string_view header, std::string_view data) {
  return raw(std::uint64_t{header.size()}).append(header).append(data);
}

std::string safetensors_image(std::span<const TestTensor> tensors) {
  std::string header = R"({"__metadata__": {"format": "pt"})";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    header += ", \"" + tensor.name + R"(": {"dtype": "F32", "shape": )" + to_text(tensor.shape) +
              R"(, "data_offsets": [)" + std::to_string(data.size()) + ", ";
    data += raw_floats(tensor.values);
    header += std::to_string(data.size()) + "]}";
  }
  return safetensors_image(header + "}", data);
}

std::string tiny_config(std::string_view more) {
  return R"({"model_type": "llama", "vocab_size": 16, "hidden_size": 8, "intermediate_size": 12,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64)" +
         std::string(more) + "}";
}

std::vector<TestTensor> make_tensors(const ModelConfig& config) {
  std::vector<TestTensor> tensors;
  int next = 0;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    TestTensor tensor{.name = expected.name, .shape = expected.shape, .values = {}};
    tensor.values.resize(static_cast<std::size_t>(*element_count(expected.shape)));
    for (float& value : tensor.values) {
      value = static_cast<float>(++next) / 16.0F;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string gguf_string(std::string_view text) { return raw(std::uint64_t{text.size()}).append(text); }

GgufImage& GgufImage::raw_value(std::string_view key, std::uint32_t type, const std::string& bytes) {
  values_ += gguf_string(key) + raw(type) + bytes;
  ++num_values_;
  return *this;
}

GgufImage& GgufImage::string(std::string_view key, std::string_view value) {
  return raw_value(key, 8, gguf_string(value));
}

GgufImage& GgufImage::strings(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = raw(std::uint32_t{8}) + raw(std::uint64_t{values.size()});
  for (const std::string& value : values) {
    bytes += gguf_string(value);
  }
  return raw_value(key, 9, bytes);
}

GgufImage& GgufImage::tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                             const std::string& bytes) {
  data_.resize((data_.size() + 31) / 32 * 32);
  tensor_info(name, dimensions, type, data_.size());
  data_ += bytes;
  return *this;
}

GgufImage& GgufImage::tensor_info(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                                  std::uint32_t type, std::uint64_t offset) {
  infos_ += gguf_string(name) + raw(static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t size : dimensions) {
    infos_ += raw(size);
  }
  infos_ += raw(type) + raw(offset);
  ++num_tensors_;
  return *this;
}

std::string GgufImage::build(std::uint64_t num_tensors, std::uint64_t num_values) const {
  std::string image = "GGUF" + raw(version_) + raw(num_tensors) + raw(num_values) + values_ + infos_;
  image.resize((image.size() + 31) / 32 * 32);
  return image + data_;
}

}  // namespace troupe::test
