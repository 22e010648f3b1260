#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"

namespace troupe {

/// Parses a JSON document. Errors `malformed_file` with the place: bad syntax (NaN and Infinity included), nesting
/// deeper than any configuration has, a key that an object has twice.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text);

/// Reads and parses a file of at most `max_bytes`. Errors name the file.
[[nodiscard]] Result<nlohmann::json> read_json_file(const std::filesystem::path& path,
                                                    std::size_t max_bytes = std::size_t{32} << 20U);

/// Reads a text file of at most `max_bytes`. Errors name the file.
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t max_bytes);

/// Whether there is anything of that name, even what cannot be read: opening it then says why.
[[nodiscard]] bool is_present(const std::filesystem::path& path);

/// `error` with the file's name in front.
[[nodiscard]] tl::unexpected<Error> fail_in_file(const std::filesystem::path& path, const Error& error);

}  // namespace troupe
