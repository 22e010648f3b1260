#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::generate {

/// A line on a terminal's standard error that tells how far the work is. Nothing is shown elsewhere.
class Progress {
 public:
  explicit Progress(bool enabled);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress() { clear(); }

  [[nodiscard]] bool enabled() const { return enabled_; }
  /// @param total 0 if it is not known yet.
  void show(std::size_t finished, std::size_t total, std::uint64_t tokens);
  /// Takes the line away, before something else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  bool shown_ = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_shown_;
};

}  // namespace troupe::generate
