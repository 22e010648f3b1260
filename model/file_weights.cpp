#include "model/file_weights.hpp"

#include <algorithm>
#include <utility>

#include "model/dequantize.hpp"
#include "model/error_text.hpp"

namespace troupe {
namespace {

void convert(DType type, std::span<const std::byte> source, std::span<float> out) { convert_to_f32(type, source, out); }
void convert(DType type, std::span<const std::byte> source, std::span<std::uint16_t> out) {
  convert_to_bf16(type, source, out);
}

/// The slices of a tensor along its first dimension.
class Rows {
 public:
  explicit Rows(const TensorView& view)
      : view_(&view),
        count_(view.shape.empty() ? 1 : view.shape.front()),
        bytes_(count_ == 0 ? 0 : view.bytes.size() / static_cast<std::size_t>(count_)) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  /// Row `row` of the model's tensor, wherever it lies in the file.
  [[nodiscard]] std::span<const std::byte> operator[](std::int64_t row) const {
    std::int64_t stored = row;
    if (view_->interleaved_heads > 0) {
      const std::int64_t head_rows = count_ / view_->interleaved_heads;
      const std::int64_t half = head_rows / 2;
      const std::int64_t within = row % head_rows;
      stored = row - within + 2 * (within % half) + within / half;
    }
    return view_->bytes.subspan(static_cast<std::size_t>(stored) * bytes_, bytes_);
  }

 private:
  const TensorView* view_;
  std::int64_t count_;
  std::size_t bytes_;
};

template <class T>
void convert_all(const TensorView& view, std::span<T> out) {
  const Rows rows(view);
  if (view.interleaved_heads > 0) {
    const std::size_t row_elements = out.size() / static_cast<std::size_t>(rows.count());
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      convert(view.dtype, rows[row], out.subspan(static_cast<std::size_t>(row) * row_elements, row_elements));
    }
    MappedFile::release(view.bytes);
    return;
  }
  // In pieces, so that a large tensor is never in memory as a whole.
  constexpr std::size_t kPieceBlocks = std::size_t{1} << 16U;
  const DTypeLayout layout = layout_of(view.dtype);
  const auto piece_bytes = kPieceBlocks * static_cast<std::size_t>(layout.block_bytes);
  const auto piece_elements = kPieceBlocks * static_cast<std::size_t>(layout.block_elements);
  for (std::size_t piece = 0; piece * piece_elements < out.size(); ++piece) {
    const std::size_t offset = piece * piece_bytes;
    const auto source = view.bytes.subspan(offset, std::min(piece_bytes, view.bytes.size() - offset));
    const std::size_t first = piece * piece_elements;
    convert(view.dtype, source, out.subspan(first, std::min(piece_elements, out.size() - first)));
    MappedFile::release(source);
  }
}

}  // namespace

FileWeights::FileWeights(std::filesystem::path path, std::vector<File> files, Tensors tensors)
    : path_(std::move(path)), files_(std::move(files)), tensors_(std::move(tensors)) {}

bool FileWeights::contains(std::string_view name) const { return tensors_.contains(name); }

Result<TensorView> FileWeights::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return fail_tensor(ErrorCode::malformed_file, name, "missing");
  }
  return found->second.view;
}

std::vector<std::string> FileWeights::names() const {
  std::vector<std::string> names;
  for (const auto& entry : tensors_) {
    names.push_back(entry.first);
  }
  return names;
}

Result<void> FileWeights::read_f32(std::string_view name, std::span<const std::int64_t> expected_shape,
                                   std::span<float> out) const {
  return read(name, expected_shape, out);
}

Result<void> FileWeights::read_bf16(std::string_view name, std::span<const std::int64_t> expected_shape,
                                    std::span<std::uint16_t> out) const {
  return read(name, expected_shape, out);
}

Result<void> FileWeights::read_rows_f32(std::string_view name, std::span<const std::int32_t> rows,
                                        std::span<float> out) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || found->second.view.shape.size() != 2 || found->second.view.dtype == DType::other) {
    return fail_tensor(ErrorCode::malformed_file, name, "expected a matrix of a type that can be read");
  }
  const TensorView& view = found->second.view;
  const auto row_elements = static_cast<std::size_t>(view.shape[1]);
  if (out.size() != rows.size() * row_elements) {
    return fail_tensor(ErrorCode::internal, name,
                       "expected room for " + std::to_string(rows.size() * row_elements) + " elements, found " +
                           std::to_string(out.size()));
  }
  const Rows source(view);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= source.count()) {
      return fail_tensor(
          ErrorCode::internal, name,
          "expected a row below " + std::to_string(source.count()) + ", found " + std::to_string(rows[i]));
    }
    convert(view.dtype, source[rows[i]], out.subspan(i * row_elements, row_elements));
  }
  return {};
}

Result<void> FileWeights::check(std::string_view name, std::span<const std::int64_t> expected_shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return fail_tensor(ErrorCode::malformed_file, name, "missing, expected shape " + to_text(expected_shape));
  }
  const StoredTensor& stored = found->second;
  if (!std::ranges::equal(stored.view.shape, expected_shape)) {
    return fail_tensor(ErrorCode::malformed_file, name,
                       "expected shape " + to_text(expected_shape) + ", found " + to_text(stored.view.shape));
  }
  if (stored.view.dtype == DType::other) {
    return fail_tensor(ErrorCode::unsupported, name, "expected a floating-point type, found " + stored.type_name);
  }
  return {};
}

template <class T>
Result<void> FileWeights::read(std::string_view name, std::span<const std::int64_t> expected_shape,
                               std::span<T> out) const {
  if (Result<void> checked = check(name, expected_shape); !checked) {
    return checked;
  }
  if (const auto elements = element_count(expected_shape); static_cast<std::size_t>(*elements) != out.size()) {
    return fail_tensor(
        ErrorCode::internal, name,
        "expected room for " + std::to_string(*elements) + " elements, found " + std::to_string(out.size()));
  }
  convert_all(tensors_.find(name)->second.view, out);
  return {};
}

tl::unexpected<Error> FileWeights::fail_tensor(ErrorCode code, std::string_view name,
                                               const std::string& problem) const {
  const auto found = tensors_.find(name);
  const std::filesystem::path& path = found == tensors_.end() ? path_ : files_[found->second.file].path;
  return fail(code, path.string() + ": tensor " + in_quotes(name) + ": " + problem);
}

}  // namespace troupe
