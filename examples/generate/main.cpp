/// troupe-generate: answers a file of prompts, all at once.

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "examples/generate/job.hpp"
#include "examples/generate/job_files.hpp"
#include "examples/generate/options.hpp"
#include "model/load.hpp"
#include "model/model_files.hpp"

namespace troupe::generate {
namespace {

/// A descriptor that becomes readable at Ctrl-C. To be made before any thread, which inherits that the signal waits.
int make_interrupt_fd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return ::signalfd(-1, &signals, SFD_CLOEXEC);
}

/// Passes the first signal on to the job and ends the program at the second.
void watch_interrupts(int signals, int job) {
  std::array<signalfd_siginfo, 1> info{};
  for (bool first = true; ::read(signals, info.data(), sizeof(info)) > 0; first = false) {
    if (!first) {
      std::_Exit(kInterrupted);
    }
    constexpr char kByte = 0;
    [[maybe_unused]] const ssize_t written = ::write(job, &kByte, 1);
  }
}

int complain(const Error& error, int code) {
  std::fprintf(stderr, "troupe-generate: %s\n", error.message.c_str());
  return code;
}

int run(const Options& options, int interrupt) {
  Result<JobFiles> files = open_files(options);
  if (!files) {
    return complain(files.error(), kUsage);
  }
  files->interrupt = interrupt;
  // Shared with the model runner's thread, which reads the weights.
  auto opened = open_model(options.model);
  if (!opened) {
    return complain(opened.error(), kCannotRun);
  }
  const ModelFiles model = std::move(*opened);
  for (const std::string& warning : model.warnings) {
    spdlog::warn("{}", warning);
  }
  const Result<PromptEncoder> encoder = PromptEncoder::make(model, options);
  if (!encoder) {
    return complain(encoder.error(), kCannotRun);
  }
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(options.engine, describe(model, options.executor.dtype),
                     [&model, executor = options.executor] { return make_torch_executor(model, executor); });
  if (!engine) {
    return complain(engine.error(), kCannotRun);
  }
  if (Result<void> emptied = empty_results(*files); !emptied) {
    return complain(emptied.error(), kCannotRun);
  }
  Job job(**engine, model, *encoder, options, *files);
  const Result<int> code = job.run();
  // Callbacks refer to the job.
  (*engine)->shutdown(ShutdownMode::cancel, std::chrono::milliseconds(0));
  engine->reset();
  return code ? *code : complain(code.error(), kCannotRun);
}

int main_program(int argc, const char* const* argv) {
  const CommandLine command_line = parse_command_line(argc, argv);
  if (command_line.exit_code) {
    std::fputs(command_line.message.c_str(), *command_line.exit_code == 0 ? stdout : stderr);
    return *command_line.exit_code;
  }
  // Standard output is for results. A reader that goes away is an error of writing, not the program's end.
  spdlog::set_default_logger(spdlog::stderr_color_mt("troupe"));
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> pipe{};
  const int signals = make_interrupt_fd();
  if (signals < 0 || ::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return complain({ErrorCode::io_error, std::strerror(errno)}, kCannotRun);
  }
  std::thread(watch_interrupts, signals, pipe[1]).detach();
  return run(command_line.options, pipe[0]);
}

}  // namespace
}  // namespace troupe::generate

int main(int argc, char** argv) { return troupe::generate::main_program(argc, argv); }
