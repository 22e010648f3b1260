#pragma once

#include <memory>
#include <string_view>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"

namespace troupe::jinja {

/// Parses a template. Supported tags: if, for, set, with, filter, macro, call, break, continue, generation.
[[nodiscard]] Outcome<std::shared_ptr<const Program>> parse(std::string_view source);

}  // namespace troupe::jinja
