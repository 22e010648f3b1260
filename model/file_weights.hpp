#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/mapped_file.hpp"
#include "model/weight_source.hpp"

namespace troupe {

/// A tensor of a checked file.
struct StoredTensor {
  TensorView view;
  /// The type's name in the file, e.g. "I64".
  std::string type_name;
  /// Index of the tensor's file.
  std::size_t file = 0;
};

/// Tensors in memory-mapped files. Memory that reading a whole tensor brings in is handed back at once, so that a file
/// which is read once does not stay in memory beside what was made of it.
class FileWeights final : public WeightSource {
 public:
  struct File {
    std::filesystem::path path;
    MappedFile data;
  };
  using Tensors = std::map<std::string, StoredTensor, std::less<>>;

  /// @param path What messages call the whole: a directory or a file.
  /// @param tensors By name in the model; each has the bytes that its type and shape need.
  FileWeights(std::filesystem::path path, std::vector<File> files, Tensors tensors);

  [[nodiscard]] bool contains(std::string_view name) const override;
  [[nodiscard]] Result<TensorView> tensor(std::string_view name) const override;
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Result<void> read_f32(std::string_view name, std::span<const std::int64_t> expected_shape,
                                      std::span<float> out) const override;
  [[nodiscard]] Result<void> read_bf16(std::string_view name, std::span<const std::int64_t> expected_shape,
                                       std::span<std::uint16_t> out) const override;
  [[nodiscard]] Result<void> read_rows_f32(std::string_view name, std::span<const std::int32_t> rows,
                                           std::span<float> out) const override;

  /// Whether a tensor is there, of that shape and a type that can be read. Errors name file, tensor, expected and
  /// found.
  [[nodiscard]] Result<void> check(std::string_view name, std::span<const std::int64_t> expected_shape) const;

 private:
  template <class T>
  [[nodiscard]] Result<void> read(std::string_view name, std::span<const std::int64_t> expected_shape,
                                  std::span<T> out) const;
  [[nodiscard]] tl::unexpected<Error> fail_tensor(ErrorCode code, std::string_view name,
                                                  const std::string& problem) const;

  std::filesystem::path path_;
  std::vector<File> files_;
  Tensors tensors_;
};

}  // namespace troupe
