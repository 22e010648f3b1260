#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Pieces of error messages about files whose content may be hostile.
namespace troupe {

/// `text` in double quotes and printable ASCII, cut when it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// E.g. "[576, 192]".
[[nodiscard]] std::string to_text(std::span<const std::int64_t> shape);

}  // namespace troupe
