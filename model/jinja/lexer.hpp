#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/jinja/fault.hpp"

namespace troupe::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    /// Text outside of tags.
    text,
    /// {{ and }}
    print_begin,
    print_end,
    /// {% and %}
    block_begin,
    block_end,
    name,
    integer,
    floating,
    /// A string literal, unescaped.
    string,
    /// An operator or bracket: `text` is it.
    symbol,
    end,
  };

  Kind kind = Kind::end;
  std::string text;
  int line = 1;
};

/// Cuts a template into tokens. White space around tags is handled as with trim_blocks and lstrip_blocks: a block or
/// comment takes the line end after it and the white space before it on its line; `-` and `+` in a tag override that.
[[nodiscard]] Outcome<std::vector<Token>> tokenize(std::string_view source);

}  // namespace troupe::jinja
