#include "examples/generate/job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>

namespace troupe::generate {

namespace {

/// Requests that are in flight at most: enough for any batch, and a file of any size needs little memory.
constexpr std::size_t kMaxInFlight = 4096;
/// Lines that are taken before outputs and the interrupt get a turn.
constexpr int kLinesAtOnce = 32;

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r") == std::string::npos; }

}  // namespace

Job::Job(Engine& engine, const ModelFiles& files, const PromptEncoder& encoder, const Options& options,
         JobFiles job_files)
    : engine_(engine),
      files_(files),
      encoder_(encoder),
      options_(options),
      job_files_(job_files),
      reader_(job_files.prompts),
      writer_(job_files.results, options.order),
      progress_(options.progress && !options.stream),
      reading_(job_files.prompts >= 0) {
  if (job_files.text != nullptr) {
    text_.emplace(job_files.text);
  }
}

Result<int> Job::run() {
  for (const std::string& argument : options_.arguments) {
    PromptLine line;
    line.prompt = argument;
    ++line_number_;
    if (Result<void> submitted = submit(std::move(line), ""); !submitted) {
      return tl::unexpected(std::move(submitted.error()));
    }
  }
  while (reading_ || !answers_.empty()) {
    if (Result<void> worked = work(); !worked) {
      return tl::unexpected(std::move(worked.error()));
    }
    progress_.show(num_finished_, reading_ ? 0 : num_lines_, num_tokens_);
  }
  progress_.clear();
  if (interrupted_) {
    return kInterrupted;
  }
  return num_failed_ > 0 ? kSomeFailed : kAllAnswered;
}

bool Job::wants_lines() const { return reading_ && answers_.size() < kMaxInFlight; }

Result<void> Job::work() {
  const Result<bool> more = take_lines();
  if (!more) {
    return tl::unexpected(more.error());
  }
  if (!reading_ && answers_.empty()) {
    return {};
  }
  std::array<pollfd, 3> fds{
      {{.fd = queue_.fd(), .events = POLLIN, .revents = 0},
       {.fd = interrupted_ ? -1 : job_files_.interrupt, .events = POLLIN, .revents = 0},
       {.fd = wants_lines() && !*more ? job_files_.prompts : -1, .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), *more ? 0 : -1) < 0 && errno != EINTR) {
    return fail(ErrorCode::io_error, std::string("cannot wait for input: ") + std::strerror(errno));
  }
  if (fds[1].revents != 0) {
    interrupt();
  }
  if (fds[2].revents != 0 && reading_) {
    if (Result<void> filled = reader_.fill(); !filled) {
      return filled;
    }
  }
  return take_outputs();
}

Result<bool> Job::take_lines() {
  for (int i = 0; i < kLinesAtOnce && wants_lines(); ++i) {
    const std::optional<LineReader::Line> line = reader_.next();
    if (!line) {
      reading_ = !reader_.at_end();
      return false;
    }
    ++line_number_;
    if (Result<void> taken = take_line(*line); !taken) {
      return tl::unexpected(std::move(taken.error()));
    }
  }
  return wants_lines();
}

Result<void> Job::take_line(const LineReader::Line& line) {
  if (line.too_long) {
    return submit(fail(ErrorCode::invalid_request,
                       "line: expected at most " + std::to_string(LineReader::kMaxLineBytes) + " bytes, found more"),
                  "");
  }
  if (is_blank(line.text)) {
    return {};
  }
  std::string id;
  Result<PromptLine> parsed = parse_prompt_line(line.text, &id);
  return submit(std::move(parsed), std::move(id));
}

void Job::choose_id(PromptLine& line) {
  line.id = "line-" + std::to_string(line_number_);
  while (ids_.contains(line.id)) {
    line.id += '_';
  }
}

Result<void> Job::submit(Result<PromptLine> line, std::string id) {
  LineResult result{.line = line_number_, .place = num_lines_++, .id = line ? line->id : std::move(id)};
  if (!line) {
    return refuse(std::move(result), std::move(line.error()));
  }
  if (line->id.empty()) {
    choose_id(*line);
    result.id = line->id;
  }
  if (!ids_.insert(line->id).second) {
    return refuse(std::move(result), {ErrorCode::duplicate_id, "id: \"" + line->id + "\" was used by an earlier line"});
  }
  Result<Request> request = encoder_.encode(std::move(*line), line_number_);
  if (!request) {
    return refuse(std::move(result), std::move(request.error()));
  }
  // Progress counts tokens as they come.
  request->streaming = text_.has_value() || progress_.enabled();
  Result<std::string> accepted =
      engine_.submit(std::move(*request), [this](const RequestOutput& output) { queue_.push(output); });
  if (!accepted) {
    return refuse(std::move(result), std::move(accepted.error()));
  }
  Answer answer{.result = std::move(result)};
  if (files_.tokenizer != nullptr) {
    answer.detokenizer = std::make_unique<Detokenizer>(*files_.tokenizer, /*skip_special_tokens=*/true);
    answer.result.text = "";
  }
  answers_.emplace(*accepted, std::move(answer));
  return {};
}

Result<void> Job::refuse(LineResult result, Error error) {
  result.error = std::move(error);
  ++num_failed_;
  ++num_finished_;
  if (text_) {
    progress_.clear();
    std::fprintf(stderr, "line %zu: %s\n", result.line, result.error.message.c_str());
    if (Result<void> finished = text_->finish(result.place); !finished) {
      return finished;
    }
  }
  return writer_.write(result);
}

Result<void> Job::take_outputs() {
  for (const RequestOutput& output : queue_.take()) {
    if (Result<void> taken = take_output(output); !taken) {
      return taken;
    }
  }
  return {};
}

Result<void> Job::take_output(const RequestOutput& output) {
  const auto found = answers_.find(output.id);
  if (found == answers_.end()) {
    return {};
  }
  Answer& answer = found->second;
  LineResult& result = answer.result;
  const bool last = output.reason != FinishReason::none;
  result.token_ids.insert(result.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  result.logprobs.insert(result.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
  num_tokens_ += output.token_ids.size();
  if (answer.detokenizer != nullptr) {
    std::string piece = answer.detokenizer->push(output.token_ids);
    if (last) {
      piece += answer.detokenizer->finish();
    }
    *result.text += piece;
    if (text_ && !piece.empty()) {
      if (Result<void> added = text_->add(result.place, piece); !added) {
        return added;
      }
    }
  }
  if (!last) {
    return {};
  }
  result.reason = output.reason;
  result.error = output.error;
  result.prompt_tokens = output.prompt_tokens;
  result.cached_tokens = output.cached_tokens;
  num_failed_ += output.reason == FinishReason::failed ? 1 : 0;
  ++num_finished_;
  Result<void> written = text_ ? text_->finish(result.place) : Result<void>();
  if (written) {
    written = writer_.write(result);
  }
  answers_.erase(found);
  return written;
}

void Job::interrupt() {
  interrupted_ = true;
  reading_ = false;
  for (const auto& [id, answer] : answers_) {
    // An error means that the request has just ended, and that its last output is on its way.
    (void)engine_.cancel(id);
  }
}

}  // namespace troupe::generate
