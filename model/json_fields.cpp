#include "model/json_fields.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

namespace troupe {
namespace {

/// Without the zeros that `std::to_string` appends.
std::string to_text(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

}  // namespace

bool has_key(const JsonNode& object, std::string_view key) {
  const std::vector<std::string> keys = object.keys();
  return std::ranges::find(keys, key) != keys.end();
}

std::int64_t integer_in(const JsonNode& node, std::int64_t min, std::int64_t max) {
  const std::int64_t value = node.integer();
  if (value < min || value > max) {
    node.refuse(ErrorCode::malformed_file, "expected an integer from " + std::to_string(min) + " to " +
                                               std::to_string(max) + ", found " + std::to_string(value));
    return min;
  }
  return value;
}

std::int32_t int32_in(const JsonNode& node, std::int32_t min, std::int32_t max) {
  return static_cast<std::int32_t>(integer_in(node, min, max));
}

double number_in(const JsonNode& node, double min, double max) {
  const double value = node.number();
  if (!std::isfinite(value) || value < min || value > max) {
    node.refuse(ErrorCode::malformed_file,
                "expected a number from " + to_text(min) +
                    (max < std::numeric_limits<double>::max() ? " to " + to_text(max) : " upwards") + ", found " +
                    to_text(value));
    return min;
  }
  return value;
}

double number_above(const JsonNode& node, double bound) {
  const double value = node.number();
  if (!std::isfinite(value) || value <= bound) {
    node.refuse(ErrorCode::malformed_file, "expected a number above " + to_text(bound) + ", found " + to_text(value));
  }
  return value;
}

std::vector<TokenId> token_ids(const JsonNode& node, std::int32_t vocab_size) {
  std::vector<TokenId> ids;
  if (node.is_null()) {
    return ids;
  }
  for (const JsonNode& element : node.is_array() ? node.elements() : std::vector{node}) {
    const TokenId id = int32_in(element, 0, vocab_size - 1);
    if (std::ranges::find(ids, id) == ids.end()) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace troupe
