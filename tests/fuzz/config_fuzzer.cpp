#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/config_json.hpp"
#include "model/dtype.hpp"
#include "model/expected_tensors.hpp"

/// Whatever the text is, a configuration that is accepted describes tensors whose sizes can be computed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)troupe::parse_generation_config(text, 512);
  const auto config = troupe::parse_config(text);
  if (!config) {
    return 0;
  }
  for (const troupe::ExpectedTensor& tensor : troupe::expected_tensors(*config)) {
    if (!troupe::byte_count(troupe::DType::f32, tensor.shape)) {
      std::abort();
    }
  }
  return 0;
}
