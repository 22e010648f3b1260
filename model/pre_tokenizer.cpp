#include "model/pre_tokenizer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/byte_level.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

/// A part of a piece: a match of the delimiter or what lies between two of them.
struct Part {
  TextSpan span;
  bool is_delimiter = false;
};

/// Cuts [0, size) at `matches`.
void cut(const std::vector<TextSpan>& matches, std::size_t size, bool invert, std::vector<Part>& parts) {
  std::size_t previous = 0;
  for (const TextSpan& match : matches) {
    if (previous != match.begin) {
      parts.push_back({.span = {.begin = previous, .end = match.begin}, .is_delimiter = invert});
    }
    parts.push_back({.span = match, .is_delimiter = !invert});
    previous = match.end;
  }
  if (previous != size) {
    parts.push_back({.span = {.begin = previous, .end = size}, .is_delimiter = invert});
  }
}

/// Joins neighbours as `behavior` says; removed parts become empty.
void join(std::vector<Part>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::isolated) {
    return;
  }
  if (behavior == SplitBehavior::removed) {
    std::erase_if(parts, [](const Part& part) { return part.is_delimiter; });
    return;
  }
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  if (backwards) {
    std::reverse(parts.begin(), parts.end());
  }
  bool previous_delimiter = false;
  std::size_t kept = 0;
  for (const Part& part : parts) {
    const bool joins = behavior == SplitBehavior::contiguous ? part.is_delimiter == previous_delimiter
                                                             : part.is_delimiter && !previous_delimiter;
    previous_delimiter = part.is_delimiter;
    if (joins && kept > 0) {
      TextSpan& last = parts[kept - 1].span;
      last = {.begin = std::min(last.begin, part.span.begin), .end = std::max(last.end, part.span.end)};
    } else {
      parts[kept++] = part;
    }
  }
  parts.resize(kept);
  if (backwards) {
    std::reverse(parts.begin(), parts.end());
  }
}

/// Splits every piece; `find` appends the delimiter's matches in a piece.
template <class Find>
Result<void> split_pieces(PreTokenizedText& text, SplitOptions options, const Find& find) {
  std::vector<TextSpan> pieces;
  pieces.reserve(text.pieces.size());
  std::vector<TextSpan> matches;
  std::vector<Part> parts;
  for (const TextSpan& piece : text.pieces) {
    matches.clear();
    parts.clear();
    const std::size_t size = piece.end - piece.begin;
    if (Result<void> found = find(std::string_view(text.text).substr(piece.begin, size), matches); !found) {
      return found;
    }
    cut(matches, size, options.invert, parts);
    join(parts, options.behavior);
    for (const Part& part : parts) {
      if (part.span.begin != part.span.end) {
        pieces.push_back({.begin = piece.begin + part.span.begin, .end = piece.begin + part.span.end});
      }
    }
  }
  text.at_start = text.at_start && !pieces.empty() && pieces.front().begin == text.pieces.front().begin;
  text.pieces = std::move(pieces);
  return {};
}

/// Rewrites every piece; `rewrite` appends the new form of a piece, given whether it is the first of the input.
template <class Rewrite>
void rewrite_pieces(PreTokenizedText& text, const Rewrite& rewrite) {
  std::string rewritten;
  rewritten.reserve(text.text.size() * 3 / 2);
  bool first = text.at_start;
  for (TextSpan& piece : text.pieces) {
    const std::size_t begin = rewritten.size();
    rewrite(std::string_view(text.text).substr(piece.begin, piece.end - piece.begin), first, rewritten);
    piece = {.begin = begin, .end = rewritten.size()};
    first = false;
  }
  text.text = std::move(rewritten);
}

}  // namespace

PreTokenizer split_pre_tokenizer(TextPattern pattern, SplitOptions options) {
  return [pattern = std::move(pattern), options](PreTokenizedText& text) {
    return split_pieces(text, options, [&](std::string_view piece, std::vector<TextSpan>& matches) {
      return pattern.find_all(piece, matches);
    });
  };
}

PreTokenizer character_pre_tokenizer(bool (*is_delimiter)(char32_t), SplitBehavior behavior) {
  return [is_delimiter, behavior](PreTokenizedText& text) {
    const auto find = [&](std::string_view piece, std::vector<TextSpan>& matches) -> Result<void> {
      for (std::size_t position = 0; position < piece.size();) {
        const CodePoint point = first_code_point(piece.substr(position));
        if (is_delimiter(point.value)) {
          matches.push_back({.begin = position, .end = position + point.size});
        }
        position += point.size;
      }
      return {};
    };
    return split_pieces(text, {.behavior = behavior}, find);
  };
}

PreTokenizer byte_level_pre_tokenizer(ByteLevelOptions options) {
  return [options = std::move(options)](PreTokenizedText& text) -> Result<void> {
    if (options.add_prefix_space) {
      rewrite_pieces(text, [](std::string_view piece, bool /*first*/, std::string& out) {
        out.append(piece.starts_with(' ') ? "" : " ").append(piece);
      });
    }
    if (options.split) {
      if (auto split = options.split(text); !split) {
        return split;
      }
    }
    rewrite_pieces(text,
                   [](std::string_view piece, bool /*first*/, std::string& out) { append_byte_level(out, piece); });
    return {};
  };
}

PreTokenizer metaspace_pre_tokenizer(const MetaspaceOptions& options) {
  PreTokenizer split;
  if (options.split) {
    split = split_pre_tokenizer(TextPattern(options.replacement), {.behavior = SplitBehavior::merged_with_next});
  }
  return [options, split = std::move(split)](PreTokenizedText& text) -> Result<void> {
    rewrite_pieces(text, [&](std::string_view piece, bool first, std::string& out) {
      const bool prepend =
          options.prepend_scheme == PrependScheme::always || (options.prepend_scheme == PrependScheme::first && first);
      if (prepend && !piece.starts_with(' ') && !piece.starts_with(options.replacement)) {
        out += options.replacement;
      }
      for (const char byte : piece) {
        if (byte == ' ') {
          out += options.replacement;
        } else {
          out += byte;
        }
      }
    });
    return split ? split(text) : Result<void>{};
  };
}

Result<void> pre_tokenize(const std::vector<PreTokenizer>& pre_tokenizers, PreTokenizedText& text) {
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers) {
    if (auto done = pre_tokenizer(text); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace troupe
