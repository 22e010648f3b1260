#include "examples/generate/output_queue.hpp"

#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::generate {

OutputQueue::OutputQueue() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

OutputQueue::~OutputQueue() { ::close(fd_); }

void OutputQueue::push(const RequestOutput& output) {
  const std::scoped_lock lock(mutex_);
  outputs_.push_back(output);
  constexpr std::uint64_t kOne = 1;
  // It fails only if the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &kOne, sizeof(kOne));
}

std::vector<RequestOutput> OutputQueue::take() {
  const std::scoped_lock lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(fd_, &count, sizeof(count));
  return std::exchange(outputs_, {});
}

}  // namespace troupe::generate
