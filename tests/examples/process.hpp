#pragma once

/// Runs a program as a user does: arguments, standard input, signals, exit code.

#include <cstdio>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::test {

class Process {
 public:
  /// Starts a program, looked up by its path. Throws std::runtime_error if that is not possible.
  explicit Process(std::vector<std::string> arguments);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process(Process&&) = delete;
  Process& operator=(Process&&) = delete;
  /// Kills it if it still runs.
  ~Process();

  /// Writes to its standard input; false if it does not take it.
  bool write(const std::string& text) const;
  void close_input();
  /// Closes the reading end of its standard output.
  void close_output();
  /// The next line of its standard output with its line end; empty at the end.
  [[nodiscard]] std::string read_line() const;
  void send_signal(int signal) const;

  struct Finished {
    /// 128 + n after signal n, as a shell has it.
    int code = -1;
    /// What was not read before.
    std::string output;
    std::string errors;
  };
  /// Closes its input and waits for its end.
  [[nodiscard]] Finished wait();

 private:
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
  std::FILE* errors_ = nullptr;
  pid_t pid_ = -1;
};

/// Runs a program to its end with `input` as its standard input.
[[nodiscard]] Process::Finished run_program(std::vector<std::string> arguments, const std::string& input = "");

}  // namespace troupe::test
