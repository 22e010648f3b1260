#include "examples/generate/line_reader.hpp"

#include <array>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/support/catch.hpp"

namespace troupe::generate {
namespace {

/// A pipe whose writing end the test holds.
struct Pipe {
  std::array<int, 2> ends{-1, -1};

  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  Pipe(Pipe&&) = delete;
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }

  void write(const std::string& text) const {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void close_writer() {
    if (ends[1] >= 0) {
      ::close(ends[1]);
      ends[1] = -1;
    }
  }
};

std::vector<std::string> take_all(LineReader& reader) {
  std::vector<std::string> lines;
  while (auto line = reader.next()) {
    lines.push_back(line->too_long ? "TOO LONG" : line->text);
  }
  return lines;
}

TEST_CASE("lines come whole whatever the pieces they were read in") {
  Pipe pipe;
  LineReader reader(pipe.ends[0]);
  pipe.write("one\ntw");
  REQUIRE(reader.fill());
  CHECK(take_all(reader) == std::vector<std::string>{"one"});
  pipe.write("o\r\n\nthree");
  REQUIRE(reader.fill());
  CHECK(take_all(reader) == std::vector<std::string>{"two", ""});
  CHECK_FALSE(reader.at_end());
  pipe.close_writer();
  REQUIRE(reader.fill());
  CHECK(take_all(reader) == std::vector<std::string>{"three"});
  CHECK(reader.at_end());
}

TEST_CASE("a file that ends with a line end has no further line") {
  Pipe pipe;
  LineReader reader(pipe.ends[0]);
  pipe.write("one\n");
  pipe.close_writer();
  REQUIRE(reader.fill());
  REQUIRE(reader.fill());
  CHECK(take_all(reader) == std::vector<std::string>{"one"});
  CHECK(reader.at_end());
}

TEST_CASE("a line without end is cut and the next one is whole again") {
  Pipe pipe;
  LineReader reader(pipe.ends[0]);
  std::vector<std::string> lines;
  const auto feed = [&](const std::string& text) {
    pipe.write(text);
    REQUIRE(reader.fill());
    for (const std::string& line : take_all(reader)) {
      lines.push_back(line);
    }
  };
  const std::string piece(1U << 15U, 'x');
  for (std::size_t fed = 0; fed < LineReader::kMaxLineBytes + (1U << 20U); fed += piece.size()) {
    feed(piece);
  }
  feed("rest\nnext\n");
  CHECK(lines == std::vector<std::string>{"TOO LONG", "next"});
}

TEST_CASE("a descriptor that cannot be read is an error") {
  LineReader reader(-1);
  const Result<void> filled = reader.fill();
  REQUIRE_FALSE(filled);
  CHECK(filled.error().code == ErrorCode::io_error);
}

}  // namespace
}  // namespace troupe::generate
