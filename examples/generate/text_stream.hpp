#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <string>

#include "cache/error.hpp"

namespace troupe::generate {

/// Prints answers as they come, one after the other in the order of their places (0 upwards): the first unfinished one
/// is live, the others are kept until it is their turn.
class TextStream {
 public:
  /// @param out Stays the caller's.
  explicit TextStream(std::FILE* out) : out_(out) {}

  [[nodiscard]] Result<void> add(std::size_t place, const std::string& text);
  [[nodiscard]] Result<void> finish(std::size_t place);

 private:
  struct Kept {
    std::string text;
    bool finished = false;
  };
  [[nodiscard]] Result<void> print();

  std::FILE* out_;
  std::map<std::size_t, Kept> kept_;
  std::size_t current_ = 0;
};

}  // namespace troupe::generate
