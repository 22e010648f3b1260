#include "model/json_node.hpp"

#include <limits>

namespace troupe {
namespace {

using nlohmann::json;

/// `key` as a reference token of a JSON pointer (RFC 6901).
std::string escaped(std::string_view key) {
  std::string token;
  for (const char character : key) {
    if (character == '~') {
      token += "~0";
    } else if (character == '/') {
      token += "~1";
    } else {
      token += character;
    }
  }
  return token;
}

std::string describe(const json& value) {
  if (value.is_null()) {
    return "nothing";
  }
  return value.is_number() || value.is_boolean() ? value.dump() : value.type_name();
}

const json kNullValue;

}  // namespace

JsonNode JsonNode::operator[](std::string_view key) const {
  expect(value_->is_object(), "an object");
  const json* field = &kNullValue;
  if (value_->is_object()) {
    const auto entry = value_->find(key);
    field = entry == value_->end() ? field : &*entry;
  }
  return {*field, pointer_ + '/' + escaped(key), *problem_};
}

std::vector<JsonNode> JsonNode::elements() const {
  expect(value_->is_array(), "an array");
  std::vector<JsonNode> nodes;
  if (value_->is_array()) {
    for (const json& element : *value_) {
      nodes.emplace_back(element, pointer_ + '/' + std::to_string(nodes.size()), *problem_);
    }
  }
  return nodes;
}

std::vector<std::string> JsonNode::keys() const {
  expect(value_->is_object(), "an object");
  std::vector<std::string> names;
  if (value_->is_object()) {
    for (const auto& field : value_->items()) {
      names.push_back(field.key());
    }
  }
  return names;
}

std::string JsonNode::string() const {
  expect(value_->is_string(), "a string");
  return value_->is_string() ? value_->get<std::string>() : std::string();
}

bool JsonNode::boolean() const {
  expect(value_->is_boolean(), "true or false");
  return value_->is_boolean() && value_->get<bool>();
}

std::int64_t JsonNode::integer() const {
  const bool fits =
      value_->is_number_integer() &&
      (!value_->is_number_unsigned() ||
       value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  expect(fits, "an integer");
  return fits ? value_->get<std::int64_t>() : 0;
}

double JsonNode::number() const {
  expect(value_->is_number(), "a number");
  return value_->is_number() ? value_->get<double>() : 0.0;
}

void JsonNode::refuse(ErrorCode code, const std::string& message) const {
  if (!problem_->error) {
    problem_->error = Error{.code = code, .message = (pointer_.empty() ? "/" : pointer_) + ": " + message};
  }
}

void JsonNode::expect(bool as_expected, std::string_view expected) const {
  if (!as_expected) {
    refuse(ErrorCode::malformed_file, "expected " + std::string(expected) + ", found " + describe(*value_));
  }
}

}  // namespace troupe
