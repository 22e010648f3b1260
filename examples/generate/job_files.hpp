#pragma once

#include <cstdio>

#include "cache/error.hpp"
#include "examples/generate/options.hpp"

namespace troupe::generate {

/// The files that a job works on. They stay open until the program ends.
struct JobFiles {
  /// Where JSON lines come from; -1 if there are none.
  int prompts = -1;
  /// Becomes readable when the job is to be interrupted.
  int interrupt = -1;
  /// Where results go; null for nowhere.
  std::FILE* results = nullptr;
  /// Where text goes as it comes; null if it is not wanted.
  std::FILE* text = nullptr;
};

/// Opens what the options name. A file of earlier results is kept until `empty_results`, for the model may turn out to
/// be unusable. Errors (`io_error`, `invalid_request`) name option, file and reason.
[[nodiscard]] Result<JobFiles> open_files(const Options& options);

/// Throws away what the file of results holds from earlier.
[[nodiscard]] Result<void> empty_results(const JobFiles& files);

}  // namespace troupe::generate
