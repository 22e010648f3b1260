#include "examples/generate/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace troupe::generate {

Progress::Progress(bool enabled) : enabled_(enabled && ::isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::size_t finished, std::size_t total, std::uint64_t tokens) {
  constexpr std::chrono::milliseconds kInterval(100);
  constexpr std::size_t kWidth = 30;
  const Clock::time_point now = Clock::now();
  if (!enabled_ || now - last_shown_ < kInterval) {
    return;
  }
  last_shown_ = now;
  shown_ = true;
  std::string bar;
  if (total > 0) {
    const std::size_t filled = std::min(kWidth, finished * kWidth / total);
    bar = "[" + std::string(filled, '=') + std::string(kWidth - filled, ' ') + "] ";
  }
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - started_).count());
  std::fprintf(stderr, "\r\033[K%s%zu%s prompts, %llu tokens, %.1f tokens/s", bar.c_str(), finished,
               total > 0 ? ("/" + std::to_string(total)).c_str() : "", static_cast<unsigned long long>(tokens),
               static_cast<double>(tokens) / seconds);
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    shown_ = false;
  }
}

}  // namespace troupe::generate
