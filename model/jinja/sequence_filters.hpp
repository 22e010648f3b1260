#pragma once

#include <string_view>

#include "model/jinja/function.hpp"

namespace troupe::jinja {

/// The filter of sequences and dicts of that name, or nullptr.
[[nodiscard]] const Builtin* find_sequence_filter(std::string_view name);

}  // namespace troupe::jinja
