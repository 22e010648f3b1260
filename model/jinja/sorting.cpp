#include "model/jinja/sorting.hpp"

#include <algorithm>

#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"

namespace troupe::jinja {

// A merge sort of our own: a comparison can fail, and std::stable_sort allows no inconsistent one (NaN).
Outcome<std::vector<std::size_t>> sorted_order(Runtime& runtime, const std::vector<Value>& keys, bool descending) {
  std::vector<std::size_t> order(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::vector<std::size_t> merged(order.size());
  for (std::size_t width = 1; width < order.size(); width *= 2) {
    for (std::size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, order.size());
      const std::size_t end = std::min(begin + 2 * width, order.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Value& first = keys[order[left]];
          const Value& second = keys[order[right]];
          auto before = descending ? less(runtime, first, second) : less(runtime, second, first);
          if (!before) {
            return pass(before);
          }
          take_right = *before;
        }
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace troupe::jinja
