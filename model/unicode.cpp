#include "model/unicode.hpp"

#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "model/utf8.hpp"

namespace troupe {
namespace {

/// A run of combining marks that sorts in negligible time; text in use has fewer than 20.
constexpr int kMaxCombiningRun = 4096;

utf8proc_category_t category(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

utf8proc_option_t options_of(NormalizationForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalizationForm::nfc || form == NormalizationForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalizationForm::nfkc || form == NormalizationForm::nfkd) {
    options |= UTF8PROC_COMPAT;
  }
  return static_cast<utf8proc_option_t>(options);
}

bool has_long_combining_run(std::string_view text) {
  int run = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(point.value));
    run = property->combining_class == 0 ? 0 : run + 1;
    if (run > kMaxCombiningRun) {
      return true;
    }
    text.remove_prefix(point.size);
  }
  return false;
}

}  // namespace

bool is_white_space(char32_t code_point) {
  return (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x20 || code_point == 0x85 || code_point == 0xA0 ||
         code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F || code_point == 0x3000;
}

bool is_numeric(char32_t code_point) {
  const auto value = category(code_point);
  return value == UTF8PROC_CATEGORY_ND || value == UTF8PROC_CATEGORY_NL || value == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point > 0x20 && code_point < 0x7F &&
           !((code_point >= '0' && code_point <= '9') || (code_point >= 'A' && code_point <= 'Z') ||
             (code_point >= 'a' && code_point <= 'z'));
  }
  const auto value = category(code_point);
  return value >= UTF8PROC_CATEGORY_PC && value <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t code_point) {
  const auto value = category(code_point);
  if ((value >= UTF8PROC_CATEGORY_LU && value <= UTF8PROC_CATEGORY_NL) || value == UTF8PROC_CATEGORY_PC) {
    return true;
  }
  const bool enclosed_letter =
      (code_point >= 0x24B6 && code_point <= 0x24E9) || (code_point >= 0x1F130 && code_point <= 0x1F149) ||
      (code_point >= 0x1F150 && code_point <= 0x1F169) || (code_point >= 0x1F170 && code_point <= 0x1F189);
  return enclosed_letter || code_point == 0x200C || code_point == 0x200D;
}

Result<std::string> normalize_unicode(std::string_view text, NormalizationForm form) {
  if (has_long_combining_run(text)) {
    return fail(ErrorCode::invalid_request, "text has more than " + std::to_string(kMaxCombiningRun) +
                                                " combining marks in a row, which cannot be normalized");
  }
  utf8proc_uint8_t* mapped = nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): utf8proc's byte type
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) {
    return fail(ErrorCode::invalid_request, std::string("text cannot be normalized: ") + utf8proc_errmsg(size));
  }
  return std::string(mapped, mapped + size);
}

std::string to_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.value == 0x130) {
      lower += "i\xCC\x87";  // the only letter whose lower case is always two code points
    } else {
      append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value))));
    }
    text.remove_prefix(point.size);
  }
  return lower;
}

}  // namespace troupe
