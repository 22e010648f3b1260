#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::bench {

/// The value below which that fraction of `values` lies; 0 if there are none.
inline double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) {
    return 0.0;
  }
  const auto index = static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

}  // namespace troupe::bench
