#pragma once

#include <cstddef>
#include <vector>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

class Runtime;

/// Positions of `keys` in ascending (or descending) order; equal ones stay in their order, as in Python's `sorted`.
[[nodiscard]] Outcome<std::vector<std::size_t>> sorted_order(Runtime& runtime, const std::vector<Value>& keys,
                                                             bool descending);

}  // namespace troupe::jinja
