#pragma once

/// Event times of the actors, as the trace viewers of Chrome and Perfetto read them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/error.hpp"

namespace troupe {

/// Nanoseconds of std::chrono::steady_clock.
[[nodiscard]] std::int64_t steady_now_ns() noexcept;

/// Events of one actor. Written by that actor alone, read when it has ended, hence without a lock. Bounded: events past
/// the limit are counted and dropped.
class TraceLane {
 public:
  struct Event {
    /// A string literal.
    const char* name = "";
    /// Number of a step, or of a ticket of the scheduler.
    std::uint64_t number = 0;
    std::int64_t started_ns = 0;
    std::int64_t ended_ns = 0;
  };

  TraceLane(std::string name, std::size_t max_events) : name_(std::move(name)), max_events_(max_events) {}

  void add(const Event& event);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Event>& events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t dropped_events() const noexcept { return dropped_events_; }

 private:
  std::string name_;
  std::size_t max_events_;
  std::vector<Event> events_;
  std::uint64_t dropped_events_ = 0;
};

/// Adds an event that lasts as long as the scope. Does nothing without a lane.
class TraceScope {
 public:
  TraceScope(const std::shared_ptr<TraceLane>& lane, const char* name, std::uint64_t number);
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  TraceScope(TraceScope&&) = delete;
  TraceScope& operator=(TraceScope&&) = delete;
  ~TraceScope();

 private:
  TraceLane* lane_;
  TraceLane::Event event_;
};

/// The lanes of one engine.
class TraceRecorder {
 public:
  /// An event takes 32 bytes; a lane grows as it fills.
  static constexpr std::size_t kMaxEventsPerLane = 1U << 19U;

  [[nodiscard]] std::shared_ptr<TraceLane> add_lane(std::string name);

  /// Writes one row for each lane in Chrome's trace event format. Error `io_error` if the file cannot be written.
  [[nodiscard]] Result<void> write(const std::string& path) const;

 private:
  std::vector<std::shared_ptr<TraceLane>> lanes_;
};

}  // namespace troupe
