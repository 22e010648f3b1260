#include "model/normalizer.hpp"

#include <utility>

#include "model/utf8.hpp"

namespace troupe {
namespace {

void strip(std::string& text, StripSides sides) {
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t position = 0; position < text.size();) {
    const CodePoint point = first_code_point(std::string_view(text).substr(position));
    const std::size_t next = position + point.size;
    if (!is_white_space(point.value)) {
      begin = std::min(begin, position);
      end = next;
    }
    position = next;
  }
  if (sides.right) {
    text.erase(end);
  }
  if (sides.left) {
    text.erase(0, begin);
  }
}

}  // namespace

Normalizer unicode_normalizer(NormalizationForm form) {
  return [form](std::string& text) -> Result<void> {
    auto normalized = normalize_unicode(text, form);
    if (!normalized) {
      return tl::unexpected(std::move(normalized).error());
    }
    text = std::move(*normalized);
    return {};
  };
}

Normalizer lowercase_normalizer() {
  return [](std::string& text) -> Result<void> {
    text = to_lower(text);
    return {};
  };
}

Normalizer replace_normalizer(TextPattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](std::string& text) {
    return pattern.replace_all(text, content);
  };
}

Normalizer prepend_normalizer(std::string prefix) {
  return [prefix = std::move(prefix)](std::string& text) -> Result<void> {
    if (!text.empty()) {
      text.insert(0, prefix);
    }
    return {};
  };
}

Normalizer strip_normalizer(StripSides sides) {
  return [sides](std::string& text) -> Result<void> {
    strip(text, sides);
    return {};
  };
}

Result<void> normalize(const std::vector<Normalizer>& normalizers, std::string& text) {
  for (const Normalizer& normalizer : normalizers) {
    if (auto done = normalizer(text); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace troupe
