#include "tests/examples/process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {
namespace {

void close_file(std::FILE*& file) {
  if (file != nullptr) {
    std::fclose(std::exchange(file, nullptr));
  }
}

/// A pipe whose ends a started program does not inherit.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  return ends;
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::array<char, 4096> chunk{};
  std::size_t count = 0;
  while (file != nullptr && (count = std::fread(chunk.data(), 1, chunk.size(), file)) > 0) {
    text.append(chunk.data(), count);
  }
  return text;
}

}  // namespace

Process::Process(std::vector<std::string> arguments) {
  // Writing to a program that has ended is an error here, not the test's end.
  std::signal(SIGPIPE, SIG_IGN);
  const std::array<int, 2> input = make_pipe();
  const std::array<int, 2> output = make_pipe();
  // A file, so that nobody needs to read it meanwhile.
  errors_ = std::tmpfile();
  input_ = ::fdopen(input[1], "w");
  output_ = ::fdopen(output[0], "r");

  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(errors_), STDERR_FILENO);
  const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  ::close(output[1]);
  if (failed != 0) {
    throw std::runtime_error(arguments[0] + ": " + std::strerror(failed));
  }
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_file(input_);
  close_file(output_);
  close_file(errors_);
}

bool Process::write(const std::string& text) const {
  return std::fwrite(text.data(), 1, text.size(), input_) == text.size() && std::fflush(input_) == 0;
}

void Process::close_input() { close_file(input_); }

void Process::close_output() { close_file(output_); }

std::string Process::read_line() const {
  std::string line;
  for (int next = 0; (next = std::fgetc(output_)) != EOF;) {
    line += static_cast<char>(next);
    if (next == '\n') {
      break;
    }
  }
  return line;
}

void Process::send_signal(int signal) const { ::kill(pid_, signal); }

Process::Finished Process::wait() {
  close_input();
  Finished finished;
  finished.output = read_all(output_);
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::rewind(errors_);
  finished.errors = read_all(errors_);
  return finished;
}

Process::Finished run_program(std::vector<std::string> arguments, const std::string& input) {
  Process process(std::move(arguments));
  process.write(input);
  return process.wait();
}

}  // namespace troupe::test
