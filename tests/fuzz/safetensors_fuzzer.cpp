#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/safetensors_header.hpp"

/// Whatever the bytes are, a header that is accepted describes tensors within them, of the right size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = troupe::parse_safetensors_header(std::as_bytes(std::span(data, size)));
  if (!entries) {
    return entries.error().message.empty() ? std::abort(), 0 : 0;
  }
  for (const troupe::SafetensorsEntry& entry : *entries) {
    const bool is_inside = entry.begin <= entry.end && entry.end <= size;
    const bool is_known = entry.dtype != troupe::DType::other;
    if (!is_inside || (is_known && static_cast<std::int64_t>(entry.end - entry.begin) !=
                                       troupe::byte_count(entry.dtype, entry.shape))) {
      std::abort();
    }
  }
  return 0;
}
