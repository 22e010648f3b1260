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

/// The files that a job works on.
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

  [[nodiscard]] Result<void> read_lines();
  [[nodiscard]] Result<void> take_line(const std::string& text);
  [[nodiscard]] Result<void> submit(Result<PromptLine> line, std::string id);
  [[nodiscard]] Result<void> refuse(LineResult result, Error error);
  [[nodiscard]] Result<void> take_outputs();
  [[nodiscard]] Result<void> take_output(const RequestOutput& output);
  void interrupt();
  /// Waits for prompts (if any are wanted), outputs or the interrupt.
  [[nodiscard]] Result<void> wait();
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
  std::size_t num_lines_ = 0;
  std::size_t num_finished_ = 0;
  std::size_t num_failed_ = 0;
  std::uint64_t num_tokens_ = 0;
  std::unordered_map<std::string, Answer> answers_;
  std::unordered_set<std::string> ids_;
};

}  // namespace troupe::generate
