#include "model/gguf_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "model/error_text.hpp"
#include "model/gguf_cursor.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are little-endian");

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::int64_t kDefaultAlignment = 32;

/// Tensor types by their number in the file, readable or not.
struct TensorType {
  std::uint32_t number;
  std::string_view name;
  DType dtype;
};
constexpr std::array kTensorTypes = std::to_array<TensorType>({
    {0, "F32", DType::f32},       {1, "F16", DType::f16},        {2, "Q4_0", DType::q4_0},
    {3, "Q4_1", DType::q4_1},     {6, "Q5_0", DType::q5_0},      {7, "Q5_1", DType::q5_1},
    {8, "Q8_0", DType::q8_0},     {9, "Q8_1", DType::other},     {10, "Q2_K", DType::other},
    {11, "Q3_K", DType::other},   {12, "Q4_K", DType::q4_k},     {13, "Q5_K", DType::q5_k},
    {14, "Q6_K", DType::q6_k},    {15, "Q8_K", DType::other},    {16, "IQ2_XXS", DType::other},
    {17, "IQ2_XS", DType::other}, {18, "IQ3_XXS", DType::other}, {19, "IQ1_S", DType::other},
    {20, "IQ4_NL", DType::other}, {21, "IQ3_S", DType::other},   {22, "IQ2_S", DType::other},
    {23, "IQ4_XS", DType::other}, {24, "I8", DType::other},      {25, "I16", DType::other},
    {26, "I32", DType::other},    {27, "I64", DType::other},     {28, "F64", DType::other},
    {29, "IQ1_M", DType::other},  {30, "BF16", DType::bf16},     {34, "TQ1_0", DType::other},
    {35, "TQ2_0", DType::other},  {39, "MXFP4", DType::other},
});

/// A tensor as the header describes it.
struct TensorInfo {
  GgufTensor tensor;
  std::uint64_t offset = 0;
};

/// Bytes of a scalar; 0 for strings and arrays, and for numbers that are no type.
std::size_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

GgufValue read_array(GgufCursor& cursor) {
  GgufArray array;
  array.type = static_cast<GgufType>(cursor.number<std::uint32_t>());
  const auto count = cursor.number<std::uint64_t>();
  const bool is_string = array.type == GgufType::string;
  const std::size_t element_bytes = is_string ? sizeof(std::uint64_t) : scalar_bytes(array.type);
  if (array.type == GgufType::array) {
    cursor.refuse(ErrorCode::unsupported, "arrays of arrays are not supported");
  } else if (element_bytes == 0) {
    cursor.refuse(ErrorCode::malformed_file,
                  "unknown element type " + std::to_string(static_cast<std::uint32_t>(array.type)));
  } else if (count > cursor.remaining() / element_bytes) {
    cursor.refuse(ErrorCode::malformed_file, "an array of " + std::to_string(count) +
                                                 " elements does not fit into the " +
                                                 std::to_string(cursor.remaining()) + " bytes left in the file");
  }
  if (!cursor.ok()) {
    return array;
  }
  array.count = static_cast<std::size_t>(count);
  if (!is_string) {
    array.bytes = cursor.take(count * element_bytes);
    return array;
  }
  GgufCursor end = cursor;
  for (std::size_t i = 0; i < array.count && end.ok(); ++i) {
    (void)end.string();
  }
  if (!end.ok()) {
    cursor.refuse(end.error().code, end.error().message);
    return array;
  }
  array.bytes = cursor.take(end.position() - cursor.position());
  return array;
}

GgufValue integer(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return value;
  }
  return static_cast<std::int64_t>(value);
}

GgufValue read_value(GgufCursor& cursor) {
  const auto type = static_cast<GgufType>(cursor.number<std::uint32_t>());
  switch (type) {
    case GgufType::u8:
      return std::int64_t{cursor.number<std::uint8_t>()};
    case GgufType::i8:
      return std::int64_t{cursor.number<std::int8_t>()};
    case GgufType::u16:
      return std::int64_t{cursor.number<std::uint16_t>()};
    case GgufType::i16:
      return std::int64_t{cursor.number<std::int16_t>()};
    case GgufType::u32:
      return std::int64_t{cursor.number<std::uint32_t>()};
    case GgufType::i32:
      return std::int64_t{cursor.number<std::int32_t>()};
    case GgufType::f32:
      return double{cursor.number<float>()};
    case GgufType::boolean:
      return cursor.number<std::uint8_t>() != 0;
    case GgufType::string:
      return cursor.string();
    case GgufType::array:
      return read_array(cursor);
    case GgufType::u64:
      return integer(cursor.number<std::uint64_t>());
    case GgufType::i64:
      return cursor.number<std::int64_t>();
    case GgufType::f64:
      return cursor.number<double>();
  }
  cursor.refuse(ErrorCode::malformed_file, "unknown value type " + std::to_string(static_cast<std::uint32_t>(type)));
  return false;
}

/// An error with the entry's name in front.
tl::unexpected<Error> fail_at(std::string_view kind, std::string_view name, const Error& error) {
  return fail(error.code, std::string(kind) + " " + in_quotes(name) + ": " + error.message);
}

Result<void> read_metadata(GgufCursor& cursor, std::uint64_t count, GgufFile& file) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = cursor.string();
    if (!cursor.ok()) {
      return fail(cursor.error().code,
                  "metadata " + std::to_string(i) + " of " + std::to_string(count) + ": " + cursor.error().message);
    }
    const GgufValue value = read_value(cursor);
    if (cursor.ok() && !file.metadata.emplace(key, value).second) {
      cursor.refuse(ErrorCode::malformed_file, "occurs twice");
    }
    if (!cursor.ok()) {
      return fail_at("metadata", key, cursor.error());
    }
  }
  return {};
}

DType read_tensor_type(GgufCursor& cursor) {
  const auto number = cursor.number<std::uint32_t>();
  const auto* const type = std::ranges::find(kTensorTypes, number, &TensorType::number);
  if (type != kTensorTypes.end() && type->dtype != DType::other) {
    return type->dtype;
  }
  std::string supported;
  for (const TensorType& known : kTensorTypes) {
    if (known.dtype != DType::other) {
      supported += (supported.empty() ? "" : ", ") + std::string(known.name);
    }
  }
  cursor.refuse(ErrorCode::unsupported,
                "expected one of the types " + supported + ", found " +
                    (type == kTensorTypes.end() ? "type " + std::to_string(number) : std::string(type->name)));
  return DType::other;
}

TensorInfo read_tensor_info(GgufCursor& cursor) {
  TensorInfo info;
  const auto num_dimensions = cursor.number<std::uint32_t>();
  if (num_dimensions > kMaxDimensions) {
    cursor.refuse(ErrorCode::malformed_file, "expected at most " + std::to_string(kMaxDimensions) +
                                                 " dimensions, found " + std::to_string(num_dimensions));
  }
  for (std::uint32_t i = 0; i < num_dimensions && cursor.ok(); ++i) {
    const auto size = cursor.number<std::uint64_t>();
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      cursor.refuse(ErrorCode::malformed_file, "expected dimensions below 2^63, found " + std::to_string(size));
    }
    info.tensor.shape.push_back(static_cast<std::int64_t>(size));
  }
  std::ranges::reverse(info.tensor.shape);
  info.tensor.dtype = read_tensor_type(cursor);
  info.offset = cursor.number<std::uint64_t>();
  return info;
}

/// Finds the bytes of a tensor in `data`, all that follows the header.
void place(TensorInfo& info, std::span<const std::byte> data, std::uint64_t alignment, GgufCursor& cursor) {
  const std::optional<std::int64_t> bytes = byte_count(info.tensor.dtype, info.tensor.shape);
  if (!bytes) {
    cursor.refuse(ErrorCode::malformed_file, "a tensor of " + to_text(info.tensor.shape) +
                                                 " is too large or has rows " + "that are not whole blocks of " +
                                                 std::string(to_string(info.tensor.dtype)));
    return;
  }
  if (info.offset % alignment != 0) {
    cursor.refuse(ErrorCode::malformed_file, "offset: expected a multiple of the alignment (" +
                                                 std::to_string(alignment) + "), found " + std::to_string(info.offset));
    return;
  }
  if (info.offset > data.size() || static_cast<std::uint64_t>(*bytes) > data.size() - info.offset) {
    cursor.refuse(ErrorCode::malformed_file, "expected " + std::to_string(*bytes) + " bytes at offset " +
                                                 std::to_string(info.offset) + ", found " +
                                                 std::to_string(data.size()) + " bytes of data in the file");
    return;
  }
  info.tensor.bytes = data.subspan(static_cast<std::size_t>(info.offset), static_cast<std::size_t>(*bytes));
}

Result<void> check_overlaps(const GgufFile& file) {
  std::vector<const GgufTensor*> tensors;
  for (const auto& entry : file.tensors) {
    tensors.push_back(&entry.second);
  }
  std::ranges::sort(tensors, {}, [](const GgufTensor* tensor) { return tensor->bytes.data(); });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i]->bytes.data() < tensors[i - 1]->bytes.data() + tensors[i - 1]->bytes.size()) {
      return fail(ErrorCode::malformed_file,
                  "tensor " + in_quotes(tensors[i]->name) + ": overlaps " + in_quotes(tensors[i - 1]->name));
    }
  }
  return {};
}

Result<std::uint64_t> read_alignment(const GgufFile& file) {
  const auto entry = file.metadata.find("general.alignment");
  if (entry == file.metadata.end()) {
    return kDefaultAlignment;
  }
  const auto* const value = std::get_if<std::int64_t>(&entry->second);
  if (value == nullptr || *value <= 0 || *value > (std::int64_t{1} << 31U) ||
      !std::has_single_bit(static_cast<std::uint64_t>(*value))) {
    return fail(ErrorCode::malformed_file,
                "metadata \"general.alignment\": expected a power of two below 2^32, found " +
                    (value == nullptr ? "another type" : std::to_string(*value)));
  }
  return static_cast<std::uint64_t>(*value);
}

Result<void> read_tensors(GgufCursor& cursor, std::uint64_t count, std::span<const std::byte> bytes, GgufFile& file) {
  std::vector<TensorInfo> infos;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view name = cursor.string();
    if (!cursor.ok()) {
      return fail(cursor.error().code,
                  "tensor " + std::to_string(i) + " of " + std::to_string(count) + ": " + cursor.error().message);
    }
    infos.push_back(read_tensor_info(cursor));
    infos.back().tensor.name = name;
    if (!cursor.ok()) {
      return fail_at("tensor", name, cursor.error());
    }
  }
  const Result<std::uint64_t> alignment = read_alignment(file);
  if (!alignment) {
    return tl::unexpected(alignment.error());
  }
  const std::uint64_t begin = (cursor.position() + *alignment - 1) / *alignment * *alignment;
  const auto data = bytes.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(begin, bytes.size())));
  for (TensorInfo& info : infos) {
    place(info, data, *alignment, cursor);
    const std::string name = info.tensor.name;
    if (cursor.ok() && !file.tensors.emplace(name, std::move(info.tensor)).second) {
      cursor.refuse(ErrorCode::malformed_file, "occurs twice");
    }
    if (!cursor.ok()) {
      return fail_at("tensor", name, cursor.error());
    }
  }
  return check_overlaps(file);
}

}  // namespace

Result<GgufFile> parse_gguf(std::span<const std::byte> bytes) {
  GgufCursor cursor(bytes);
  if (cursor.number<std::uint32_t>() != kMagic) {
    return fail(ErrorCode::malformed_file, "expected a GGUF file, which begins with \"GGUF\"");
  }
  const auto version = cursor.number<std::uint32_t>();
  if (cursor.ok() && version != 2 && version != 3) {
    return fail(ErrorCode::unsupported,
                "expected GGUF version 2 or 3 (little-endian), found " + std::to_string(version));
  }
  const auto num_tensors = cursor.number<std::uint64_t>();
  const auto num_metadata = cursor.number<std::uint64_t>();
  if (!cursor.ok()) {
    return fail(cursor.error().code, "header: " + cursor.error().message);
  }
  GgufFile file;
  Result<void> read = read_metadata(cursor, num_metadata, file);
  if (read) {
    read = read_tensors(cursor, num_tensors, bytes, file);
  }
  if (!read) {
    return tl::unexpected(std::move(read).error());
  }
  return file;
}

}  // namespace troupe
