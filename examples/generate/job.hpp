#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/engine.hpp"
#include "examples/generate/job_files.hpp"
#include "examples/generate/line_reader.hpp"
#include "examples/generate/options.hpp"
#include "examples/generate/output_queue.hpp"
#include "examples/generate/progress.hpp"
#include "examples/generate/prompt_encoder.hpp"
#include "examples/generate/result_writer.hpp"
#include "examples/generate/text_stream.hpp"
#include "model/detokenizer.hpp"
#include "model/model_files.hpp"

namespace troupe::generate {

/// Exit codes of the program.
enum ExitCode : int { kAllAnswered = 0, kSomeFailed = 1, kUsage = 2, kCannotRun = 3, kInterrupted = 130 };

/// Submits lines as they come and writes results as they come, in one thread that waits for whichever happens first.
class Job {
 public:
  /// Everything given outlives the job.
  Job(Engine& engine, const ModelFiles& files, const PromptEncoder& encoder, const Options& options,
      JobFiles job_files);

  /// Runs to the end, or until the interrupt; returns the exit code. Error `io_error` if results cannot be written.
  [[nodiscard]] Result<int> run();

 private:
  /// A line that was submitted.
  struct Answer {
    LineResult result;
    /// Null if the model has no tokenizer.
    std::unique_ptr<Detokenizer> detokenizer;
  };

  /// Takes lines that were read already, a few at a time; returns whether there may be more.
  [[nodiscard]] Result<bool> take_lines();
  [[nodiscard]] Result<void> take_line(const LineReader::Line& line);
  /// @param id That of a line with an error, as far as it is known.
  [[nodiscard]] Result<void> submit(Result<PromptLine> line, std::string id);
  void choose_id(PromptLine& line);
  [[nodiscard]] Result<void> refuse(LineResult result, Error error);
  [[nodiscard]] Result<void> take_outputs();
  [[nodiscard]] Result<void> take_output(const RequestOutput& output);
  void interrupt();
  /// Waits for prompts (if any are wanted), outputs or the interrupt, and takes what there is.
  [[nodiscard]] Result<void> work();
  [[nodiscard]] bool wants_lines() const;

  Engine& engine_;
  const ModelFiles& files_;
  const PromptEncoder& encoder_;
  const Options& options_;
  JobFiles job_files_;
  OutputQueue queue_;
  LineReader reader_;
  ResultWriter writer_;
  std::optional<TextStream> text_;
  Progress progress_;

  bool reading_ = false;
  bool interrupted_ = false;
  /// Number of the last line or argument taken, from 1; blank lines count.
  std::size_t line_number_ = 0;
  /// Lines and arguments that get a result.
  std::size_t num_lines_ = 0;
  std::size_t num_finished_ = 0;
  std::size_t num_failed_ = 0;
  std::uint64_t num_tokens_ = 0;
  std::unordered_map<std::string, Answer> answers_;
  std::unordered_set<std::string> ids_;
};

}  // namespace troupe::generate
