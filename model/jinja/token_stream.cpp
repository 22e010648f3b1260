#include "model/jinja/token_stream.hpp"

#include <algorithm>

#include "model/jinja/limits.hpp"

namespace troupe::jinja {

TokenStream::TokenStream(std::vector<Token> tokens, Program& program) : tokens_(std::move(tokens)), program_(program) {
  for (const char* reserved : {"loop", "caller", "varargs", "kwargs"}) {
    (void)symbol(reserved);
  }
}

bool TokenStream::skip_symbol(std::string_view text) {
  const bool found = is_symbol(text);
  if (found) {
    (void)take();
  }
  return found;
}

bool TokenStream::skip_name(std::string_view text) {
  const bool found = is_name(text);
  if (found) {
    (void)take();
  }
  return found;
}

void TokenStream::expect_symbol(std::string_view text) {
  if (!skip_symbol(text)) {
    fail_expecting("'" + std::string(text) + "'");
  }
}

void TokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) {
    fail_expecting("'" + std::string(text) + "'");
  }
}

void TokenStream::expect(Token::Kind kind, std::string_view expected) {
  if (!is(kind)) {
    fail_expecting(expected);
  }
  (void)take();
}

std::string TokenStream::take_name(std::string_view expected) {
  if (!is(Token::Kind::name)) {
    fail_expecting(expected);
  }
  return take().text;
}

void TokenStream::fail_expecting(std::string_view expected) const {
  std::string found;
  switch (current().kind) {
    case Token::Kind::text:
    case Token::Kind::end:
      found = "the end of the template";
      break;
    case Token::Kind::print_begin:
    case Token::Kind::block_begin:
      found = "a tag";
      break;
    case Token::Kind::print_end:
    case Token::Kind::block_end:
      found = "the end of the tag";
      break;
    default:
      found = "'" + current().text + "'";
  }
  fail_at(current().line, "expected " + std::string(expected) + ", found " + found);
}

void TokenStream::fail_at(int line, std::string message) {
  throw Fault{std::move(message), line, false};  // NOLINT(*-exception-baseclass): never leaves the parser
}

Symbol TokenStream::symbol(const std::string& name) {
  const auto [entry, added] = symbols_.emplace(name, static_cast<Symbol>(program_.names.size()));
  if (added) {
    program_.names.push_back(name);
  }
  if (macro != nullptr) {
    macro->uses_caller |= entry->second == kCaller;
    macro->uses_varargs |= entry->second == kVarargs;
    macro->uses_kwargs |= entry->second == kKwargs;
  }
  return entry->second;
}

TokenStream::Level::Level(TokenStream& stream) : stream_(stream) {
  if (++stream_.depth_ > kMaxNesting) {
    --stream_.depth_;
    fail_at(stream_.current().line, "expected at most " + std::to_string(kMaxNesting) + " levels of nesting, found more");
  }
}

}  // namespace troupe::jinja
