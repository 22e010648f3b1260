#pragma once

#include <mutex>
#include <vector>

#include "actors/request.hpp"

namespace troupe::generate {

/// Outputs on their way from the engine's threads to the program's own, which waits for them with poll().
class OutputQueue {
 public:
  OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;
  OutputQueue(OutputQueue&&) = delete;
  OutputQueue& operator=(OutputQueue&&) = delete;
  ~OutputQueue();

  void push(const RequestOutput& output);
  /// Everything pushed since the last call.
  [[nodiscard]] std::vector<RequestOutput> take();
  /// Readable while there is something to take.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  std::mutex mutex_;
  std::vector<RequestOutput> outputs_;
};

}  // namespace troupe::generate
