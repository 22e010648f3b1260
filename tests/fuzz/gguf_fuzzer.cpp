#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "model/dequantize.hpp"
#include "model/gguf_config.hpp"
#include "model/gguf_file.hpp"
#include "model/gguf_weights.hpp"

/// Whatever the bytes are, what is accepted can be read: metadata, configuration, vocabulary and tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = troupe::parse_gguf(std::as_bytes(std::span(data, size)));
  if (!file) {
    return 0;
  }
  (void)troupe::read_gguf_config(*file);
  (void)troupe::read_gguf_vocabulary(*file);
  for (const auto& [name, tensor] : file->tensors) {
    (void)troupe::hugging_face_name(name);
    const auto elements = troupe::element_count(tensor.shape);
    if (!elements || static_cast<std::int64_t>(tensor.bytes.size()) != troupe::byte_count(tensor.dtype, tensor.shape)) {
      std::abort();
    }
    std::vector<float> wide(static_cast<std::size_t>(*elements));
    troupe::convert_to_f32(tensor.dtype, tensor.bytes, wide);
    std::vector<std::uint16_t> narrow(wide.size());
    troupe::convert_to_bf16(tensor.dtype, tensor.bytes, narrow);
  }
  return 0;
}
