#include "model/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/error_text.hpp"

namespace troupe {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
/// An order of magnitude more than any model's.
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{32} << 20U;
constexpr std::size_t kMaxDimensions = 8;

struct TypeInfo {
  std::string_view name;
  std::int64_t bits;
  DType dtype;
};
constexpr std::array kTypes = std::to_array<TypeInfo>({
    {"F32", 32, DType::f32},      {"F16", 16, DType::f16},      {"BF16", 16, DType::bf16},
    {"F64", 64, DType::other},    {"I64", 64, DType::other},    {"U64", 64, DType::other},
    {"I32", 32, DType::other},    {"U32", 32, DType::other},    {"I16", 16, DType::other},
    {"U16", 16, DType::other},    {"I8", 8, DType::other},      {"U8", 8, DType::other},
    {"BOOL", 8, DType::other},    {"F8_E4M3", 8, DType::other}, {"F8_E5M2", 8, DType::other},
    {"F8_E8M0", 8, DType::other}, {"F6_E2M3", 6, DType::other}, {"F6_E3M2", 6, DType::other},
    {"F4", 4, DType::other},      {"C64", 64, DType::other},
});

tl::unexpected<Error> malformed(std::string message) { return fail(ErrorCode::malformed_file, std::move(message)); }

tl::unexpected<Error> malformed_tensor(std::string_view name, const std::string& problem) {
  return malformed("tensor " + in_quotes(name) + ": " + problem);
}

/// Receives the header as a stream of events and lets only what the format has through, so that a hostile document
/// never becomes a tree in memory. Returning false ends the parse; `problem` then says why.
class Handler {
 public:
  std::vector<SafetensorsEntry> entries;
  std::string problem;

  bool null() { return refuse_value("null"); }
  bool boolean(bool /*value*/) { return refuse_value("a boolean"); }
  bool number_integer(std::int64_t number) { return refuse_value(std::to_string(number)); }
  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::shape && number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      if (entries.back().shape.size() == kMaxDimensions) {
        return refuse("expected at most " + std::to_string(kMaxDimensions) + " dimensions, found more");
      }
      entries.back().shape.push_back(static_cast<std::int64_t>(number));
      return true;
    }
    if (place_ == Place::offsets && number <= std::numeric_limits<std::size_t>::max()) {
      ++num_offsets_;
      (num_offsets_ == 1 ? entries.back().begin : entries.back().end) = static_cast<std::size_t>(number);
      return num_offsets_ <= 2 || refuse("data_offsets: expected two numbers, found more");
    }
    return refuse_value(std::to_string(number));
  }
  bool number_float(double /*number*/, const std::string& text) { return refuse_value(in_quotes(text)); }
  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      entries.back().type_name = std::move(text);
      return true;
    }
    return refuse_value(in_quotes(text));
  }
  static bool binary(json::binary_t& /*bytes*/) { return false; }

  bool start_object(std::size_t /*size*/) {
    if (place_ == Place::document) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) {
      return refuse_value("an object");
    }
    place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
    if (place_ == Place::tensor) {
      entries.emplace_back().name = name_;
      seen_ = {};
    }
    return true;
  }

  bool key(std::string& text) {
    if (place_ == Place::top) {
      name_ = std::move(text);
      return name_ != "__metadata__" || !std::exchange(has_metadata_, true) || refuse("occurs twice");
    }
    key_ = std::move(text);
    if (place_ == Place::metadata) {
      return true;
    }
    const auto* const field = std::ranges::find(kFields, key_);
    if (field == kFields.end()) {
      return refuse("unknown key " + in_quotes(key_));
    }
    return !std::exchange(seen_[field - kFields.begin()], true) ||
           refuse("the key " + in_quotes(key_) + " occurs twice");
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      for (std::size_t i = 0; i < kFields.size(); ++i) {
        if (!seen_[i]) {
          return refuse("the key \"" + std::string(kFields[i]) + "\" is missing");
        }
      }
    }
    place_ = Place::top;
    return true;
  }

  bool start_array(std::size_t /*size*/) {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
      num_offsets_ = 0;
      return true;
    }
    return refuse_value("an array");
  }
  bool end_array() {
    if (place_ == Place::offsets && num_offsets_ != 2) {
      return refuse("data_offsets: expected two numbers, found " + std::to_string(num_offsets_));
    }
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*exception*/) {
    problem = "not valid JSON at byte " + std::to_string(kLengthBytes + position);
    return false;
  }

 private:
  enum class Place : std::uint8_t { document, top, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  bool refuse(const std::string& message) {
    problem = (name_.empty() ? "" : "tensor " + in_quotes(name_) + ": ") + message;
    return false;
  }

  bool refuse_value(const std::string& found) {
    switch (place_) {
      case Place::document:
        return refuse("expected a JSON object, found " + found);
      case Place::top:
        return refuse("expected an object, found " + found);
      case Place::metadata:
        return refuse("expected strings, found " + found);
      case Place::tensor:
        return refuse((key_ == "dtype" ? "dtype: expected a string, found " : key_ + ": expected an array, found ") +
                      found);
      case Place::shape:
        return refuse("shape: expected numbers from 0 to 2^63 - 1, found " + found);
      case Place::offsets:
        break;
    }
    return refuse("data_offsets: expected numbers that are not negative, found " + found);
  }

  Place place_ = Place::document;
  /// Key of the top object.
  std::string name_;
  /// Key within that.
  std::string key_;
  std::array<bool, kFields.size()> seen_{};
  int num_offsets_ = 0;
  bool has_metadata_ = false;
};

/// Checks that an entry's bytes lie in the data and are as many as its type and shape say.
Result<void> check_entry(SafetensorsEntry& entry, std::size_t data_bytes) {
  const auto* const type = std::ranges::find(kTypes, entry.type_name, &TypeInfo::name);
  if (type == kTypes.end()) {
    return malformed_tensor(entry.name, "unknown dtype " + in_quotes(entry.type_name));
  }
  entry.dtype = type->dtype;
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return malformed_tensor(entry.name, "data_offsets: expected an interval in [0, " + std::to_string(data_bytes) +
                                            "], the data of the file, found [" + std::to_string(entry.begin) + ", " +
                                            std::to_string(entry.end) + "]");
  }
  const std::optional<std::int64_t> elements = element_count(entry.shape);
  const bool fits = elements && *elements <= std::numeric_limits<std::int64_t>::max() / type->bits;
  const std::size_t found = entry.end - entry.begin;
  if (!fits || static_cast<std::size_t>(*elements * type->bits) != found * 8) {
    return malformed_tensor(entry.name, "expected " + (fits ? std::to_string(*elements * type->bits / 8) : "too many") +
                                            " bytes for " + entry.type_name + " " + to_text(entry.shape) + ", found " +
                                            std::to_string(found));
  }
  return {};
}

Result<void> check_names(const std::vector<SafetensorsEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) {
    names.emplace_back(entry.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return malformed_tensor(*twice, "occurs twice");
  }
  return {};
}

/// Sorts the entries by place and checks that each begins where the one before ends.
Result<void> check_places(std::vector<SafetensorsEntry>& entries, std::size_t data_bytes) {
  std::ranges::sort(entries, {}, [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::size_t expected = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != expected) {
      return malformed_tensor(entry.name, std::string(entry.begin < expected ? "overlaps" : "leaves a hole after") +
                                              " the tensor before it: expected to begin at " +
                                              std::to_string(expected) + ", found " + std::to_string(entry.begin));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    return malformed("expected " + std::to_string(expected) + " bytes of data, found " + std::to_string(data_bytes));
  }
  return {};
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::span<const std::byte> file) {
  static_assert(std::endian::native == std::endian::little);
  if (file.size() < kLengthBytes) {
    return malformed("expected at least 8 bytes, found " + std::to_string(file.size()));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  const std::size_t rest = file.size() - kLengthBytes;
  if (const std::uint64_t max = std::min<std::uint64_t>(rest, kMaxHeaderBytes); header_bytes > max) {
    return malformed("header length: expected at most " + std::to_string(max) + ", found " +
                     std::to_string(header_bytes));
  }
  // NOLINTNEXTLINE(*-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, header_bytes);
  if (!text.starts_with('{')) {
    return malformed("header: expected a JSON object, found " +
                     (text.empty() ? "nothing" : in_quotes(text.substr(0, 1))));
  }
  Handler handler;
  if (!json::sax_parse(text, &handler)) {
    return malformed("header: " + handler.problem);
  }
  std::vector<SafetensorsEntry> entries = std::move(handler.entries);
  const std::size_t data_bytes = rest - header_bytes;
  Result<void> checked = check_names(entries);
  for (std::size_t i = 0; checked && i < entries.size(); ++i) {
    checked = check_entry(entries[i], data_bytes);
  }
  if (checked) {
    checked = check_places(entries, data_bytes);
  }
  if (!checked) {
    return tl::unexpected(checked.error());
  }
  for (SafetensorsEntry& entry : entries) {
    entry.begin += kLengthBytes + header_bytes;
    entry.end += kLengthBytes + header_bytes;
  }
  return entries;
}

}  // namespace troupe
