#pragma once

#include <string>
#include <string_view>

/// GPT-2's alphabet, which writes every byte as one printable character ("Ġ" is a space).
namespace troupe {

/// Appends `bytes` in the alphabet to `out`.
void append_byte_level(std::string& out, std::string_view bytes);

/// The bytes that `token` stands for. A token with any character outside the alphabet stands for its own UTF-8.
[[nodiscard]] std::string from_byte_level(std::string_view token);

}  // namespace troupe
