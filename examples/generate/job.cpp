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
      progress_(!options.quiet && !options.stream),
      reading_(job_files.prompts >= 0) {
  if (job_files.text != nullptr) {
    text_.emplace(job_files.text);
  }
}

Result<int> Job::run() {
  for (const std::string& argument : options_.arguments) {
    PromptLine line;
    line.prompt = argument;
    ++num_lines_;
    if (Result<void> submitted = submit(std::move(line), ""); !submitted) {
      return tl::unexpected(std::move(submitted.error()));
    }
  }
  while (reading_ || !answers_.empty()) {
    Result<void> done = wait();
    if (done) {
      done = take_outputs();
    }
    if (!done) {
      return tl::unexpected(std::move(done.error()));
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

Result<void> Job::wait() {
  // Lines that were read but not taken yet need no waiting.
  if (wants_lines()) {
    const std::size_t before = num_lines_;
    if (Result<void> read = read_lines(); !read || num_lines_ != before || !reading_) {
      return read;
    }
  }
  std::array<pollfd, 3> fds{{{.fd = queue_.fd(), .events = POLLIN, .revents = 0},
                             {.fd = interrupted_ ? -1 : job_files_.interrupt, .events = POLLIN, .revents = 0},
                             {.fd = wants_lines() ? job_files_.prompts : -1, .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
    return fail(ErrorCode::io_error, std::string("cannot wait for input: ") + std::strerror(errno));
  }
  if (fds[1].revents != 0) {
    interrupt();
  }
  if (fds[2].revents != 0 && reading_) {
    const Result<bool> filled = reader_.fill();
    if (!filled) {
      return tl::unexpected(filled.error());
    }
    return read_lines();
  }
  return {};
}

Result<void> Job::read_lines() {
  while (wants_lines()) {
    std::optional<LineReader::Line> line = reader_.next();
    if (!line) {
      reading_ = !reader_.at_end();
      return {};
    }
    if (is_blank(line->text) && !line->too_long) {
      continue;
    }
    ++num_lines_;
    Result<void> taken =
        line->too_long ? submit(fail(ErrorCode::invalid_request,
                                     "line: expected at most " + std::to_string(LineReader::kMaxLineBytes) + " bytes"),
                                "")
                       : take_line(line->text);
    if (!taken) {
      return taken;
    }
  }
  return {};
}

Result<void> Job::take_line(const std::string& text) {
  std::string id;
  Result<PromptLine> line = parse_prompt_line(text, &id);
  return submit(std::move(line), std::move(id));
}

Result<void> Job::submit(Result<PromptLine> line, std::string id) {
  LineResult result{.line = num_lines_, .id = line ? line->id : std::move(id)};
  if (!line) {
    return refuse(std::move(result), std::move(line.error()));
  }
  if (line->id.empty()) {
    line->id = std::to_string(num_lines_);
    result.id = line->id;
  }
  if (!ids_.insert(line->id).second) {
    return refuse(std::move(result), {ErrorCode::duplicate_id, "id: \"" + line->id + "\" was used by an earlier line"});
  }
  Result<Request> request = encoder_.encode(std::move(*line), num_lines_);
  if (!request) {
    return refuse(std::move(result), std::move(request.error()));
  }
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
    if (Result<void> finished = text_->finish(result.line); !finished) {
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
      if (Result<void> added = text_->add(result.line, piece); !added) {
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
  Result<void> written = text_ ? text_->finish(result.line) : Result<void>();
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
