#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds on what a template may cost. Templates and messages come from strangers: each bound ends in an error value.
namespace troupe::jinja {

/// Bytes of a template's source. The longest template in use has about 20 kB.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20U;
/// Levels of parentheses, brackets and blocks that a template may nest.
inline constexpr int kMaxNesting = 100;
/// Height of an expression tree; a chain such as `a + b + c` adds a level for each operator.
inline constexpr int kMaxTreeHeight = 500;
/// Evaluations (expressions, statements, macro calls) that may be in progress at once: bounds the native stack.
inline constexpr int kMaxRunDepth = 1000;
/// Levels of lists and dicts inside a value.
inline constexpr int kMaxValueDepth = 100;
/// Bytes of one string, and of a render's output.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20U;
/// Bytes that a render may put into new strings, lists and dicts, all together.
inline constexpr std::uint64_t kMaxProducedBytes = std::uint64_t{1} << 28U;
/// Evaluations, comparisons and visits of elements in a render, about a second of work.
inline constexpr std::uint64_t kMaxWork = std::uint64_t{1} << 23U;
/// Bytes of text that cost as much as one evaluation when they are searched or compared.
inline constexpr std::size_t kBytesPerStep = 64;
/// Spaces that a level of `tojson(indent)` or `indent` may have.
inline constexpr std::int64_t kMaxIndent = 1000;
/// Elements that `range` may give, as in jinja2's sandbox.
inline constexpr std::int64_t kMaxRange = 100'000;

}  // namespace troupe::jinja
