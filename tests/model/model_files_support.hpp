#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/model_config.hpp"

namespace troupe::test {

/// A new folder that is gone at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder(TemporaryFolder&&) = delete;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file below the folder and returns its path, which most callers know.
  // NOLINTNEXTLINE(modernize-use-nodiscard)
  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
std::span<const std::byte> bytes_of(std::string_view text);

/// The bytes of a number, little-endian.
template <class T>
std::string raw(T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof(T)};  // NOLINT(*-reinterpret-cast)
}
std::string raw_floats(std::span<const float> values);

/// A safetensors file: length, header, data.
std::string safetensors_image(std::string_view header, std::string_view data);

struct TestTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
/// A safetensors file of float32 tensors.
std::string safetensors_image(std::span<const TestTensor> tensors);

/// A config.json for a model of one layer: vocabulary of 16, hidden size of 8, two heads and one key-value head of 4,
/// intermediate size of 12, 64 positions. `more` is put in, e.g. `, "rope_theta": 5`.
std::string tiny_config(std::string_view more = "");
/// The tensors of a model, each value another small number.
std::vector<TestTensor> make_tensors(const ModelConfig& config);

/// Builds GGUF files, right or wrong.
class GgufImage {
 public:
  explicit GgufImage(std::uint32_t version = 3) : version_(version) {}

  /// Adds a value given as its type number and bytes.
  GgufImage& raw_value(std::string_view key, std::uint32_t type, const std::string& bytes);
  GgufImage& u32(std::string_view key, std::uint32_t value) { return raw_value(key, 4, raw(value)); }
  GgufImage& f32(std::string_view key, float value) { return raw_value(key, 6, raw(value)); }
  GgufImage& boolean(std::string_view key, bool value) { return raw_value(key, 7, raw(value)); }
  GgufImage& string(std::string_view key, std::string_view value);
  GgufImage& strings(std::string_view key, const std::vector<std::string>& values);

  /// Adds a tensor; its data lies behind that of those before, aligned to 32. `dimensions` in GGUF's order.
  GgufImage& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                    const std::string& bytes);
  /// Adds only the description of a tensor.
  GgufImage& tensor_info(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                         std::uint64_t offset);

  [[nodiscard]] std::string build() const { return build(num_tensors_, num_values_); }
  /// With other counts than there are.
  [[nodiscard]] std::string build(std::uint64_t num_tensors, std::uint64_t num_values) const;

 private:
  std::uint32_t version_;
  std::uint64_t num_values_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::string values_;
  std::string infos_;
  std::string data_;
};
/// A length of 64 bits and the text.
std::string gguf_string(std::string_view text);

}  // namespace troupe::test
