#include "examples/generate/job_files.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::generate {

namespace {

tl::unexpected<Error> cannot_open(const std::string& what) {
  return fail(ErrorCode::io_error, what + ": " + std::strerror(errno));
}

bool is_same_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && S_ISREG(first.st_mode) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool is_directory(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<JobFiles> open_files(const Options& options) {
  JobFiles files;
  if (options.prompts == "-") {
    files.prompts = STDIN_FILENO;
  } else if (!options.prompts.empty()) {
    files.prompts = ::open(options.prompts.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(*-vararg)
    if (files.prompts < 0) {
      return cannot_open("--prompts " + options.prompts);
    }
    if (is_directory(files.prompts)) {
      return fail(ErrorCode::io_error, "--prompts " + options.prompts + ": expected a file, found a directory");
    }
  }
  if (options.stream) {
    files.text = stdout;
  }
  if (options.out == "-") {
    files.results = options.stream ? nullptr : stdout;
    return files;
  }
  constexpr mode_t kMode = 0666;
  const int out = ::open(options.out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode);  // NOLINT(*-vararg)
  files.results = out < 0 ? nullptr : ::fdopen(out, "w");
  if (files.results == nullptr) {
    return cannot_open("--out " + options.out);
  }
  if (is_same_file(out, files.prompts)) {
    return fail(ErrorCode::invalid_request, "--out " + options.out + ": expected another file than that of --prompts");
  }
  return files;
}

Result<void> empty_results(const JobFiles& files) {
  if (files.results == nullptr || files.results == stdout) {
    return {};
  }
  const int out = ::fileno(files.results);
  struct stat status {};
  // Pipes and devices hold nothing.
  if (::fstat(out, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(out, 0) != 0) {
    return fail(ErrorCode::io_error, std::string("cannot empty the file of results: ") + std::strerror(errno));
  }
  return {};
}

}  // namespace troupe::generate
