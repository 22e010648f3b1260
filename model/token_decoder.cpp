#include "model/token_decoder.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/byte_level.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The byte of a token "<0xNN>".
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
    return std::nullopt;
  }
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  if (high < 0 || low < 0) {
    return std::nullopt;
  }
  return static_cast<char>(high * 16 + low);
}

std::string replaced(std::string_view token, std::string_view from, std::string_view to) {
  std::string text(token);
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A token on which a regular expression gives up stays as it is.
std::string replaced(std::string_view token, const ReplaceDecoder& step) {
  std::string text(token);
  return step.pattern.replace_all(text, step.content) ? text : std::string(token);
}

/// Bytes of up to `limit` times `content` at the start of `text`.
std::size_t leading(std::string_view text, std::string_view content, std::size_t limit) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < limit && text.substr(size).starts_with(content); ++i) {
    size += content.size();
  }
  return size;
}

/// Bytes of up to `limit` times `content` at the end of `text`.
std::size_t trailing(std::string_view text, std::string_view content, std::size_t limit) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < limit && text.substr(0, text.size() - size).ends_with(content); ++i) {
    size += content.size();
  }
  return size;
}

class AppendStage : public DecodeStage {
 public:
  explicit AppendStage(std::string& out) : out_(out) {}
  void push(std::string_view token) override { out_ += token; }
  void finish() override {}

 private:
  std::string& out_;
};

class ChainedStage : public DecodeStage {
 public:
  explicit ChainedStage(std::unique_ptr<DecodeStage> next) : next_(std::move(next)) {}
  void finish() override {
    flush();
    next_->finish();
  }

 protected:
  /// Emits what was held back.
  virtual void flush() {}
  void emit(std::string_view text) { next_->push(text); }

 private:
  std::unique_ptr<DecodeStage> next_;
};

class ByteLevelStage : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    text_.clear();
    stream_.push(from_byte_level(token), text_);
    emit(text_);
  }

 private:
  void flush() override {
    text_.clear();
    stream_.finish(text_);
    emit(text_);
  }

  Utf8Stream stream_;
  std::string text_;
};

class ByteFallbackStage : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    if (const auto byte = byte_of(token)) {
      // One bad byte spoils its whole run, so a run cannot be handed on before its end.
      run_ += *byte;
      return;
    }
    flush();
    emit(token);
  }

 private:
  void flush() override {
    if (run_.empty()) {
      return;
    }
    if (find_invalid_utf8(run_)) {
      for (std::size_t i = 0; i < run_.size(); ++i) {
        emit("\uFFFD");
      }
    } else {
      emit(run_);
    }
    run_.clear();
  }

  std::string run_;
};

class ReplaceStage : public ChainedStage {
 public:
  ReplaceStage(std::unique_ptr<DecodeStage> next, const ReplaceDecoder& step)
      : ChainedStage(std::move(next)), step_(step) {}
  void push(std::string_view token) override { emit(replaced(token, step_)); }

 private:
  const ReplaceDecoder& step_;
};

class MetaspaceStage : public ChainedStage {
 public:
  MetaspaceStage(std::unique_ptr<DecodeStage> next, const MetaspaceDecoder& step)
      : ChainedStage(std::move(next)), step_(step) {}
  void push(std::string_view token) override {
    emit(replaced(token, step_.replacement, first_ && step_.drop_in_first_token ? "" : " "));
    first_ = false;
  }

 private:
  const MetaspaceDecoder& step_;
  bool first_ = true;
};

class StripTokenStage : public ChainedStage {
 public:
  StripTokenStage(std::unique_ptr<DecodeStage> next, const StripDecoder& step)
      : ChainedStage(std::move(next)), step_(step) {}
  void push(std::string_view token) override {
    token.remove_prefix(leading(token, step_.content, step_.start));
    token.remove_suffix(trailing(token, step_.content, step_.stop));
    emit(token);
  }

 private:
  const StripDecoder& step_;
};

class StripTextStage : public ChainedStage {
 public:
  StripTextStage(std::unique_ptr<DecodeStage> next, const StripDecoder& step)
      : ChainedStage(std::move(next)), step_(step), start_left_(step.start) {}
  void push(std::string_view fragment) override {
    const std::size_t start = leading(fragment, step_.content, start_left_);
    start_left_ -= start / step_.content.size();
    fragment.remove_prefix(start);
    if (fragment.empty()) {
      return;
    }
    start_left_ = 0;
    held_ += fragment;
    const std::size_t end = trailing(held_, step_.content, step_.stop);
    emit(std::string_view(held_).substr(0, held_.size() - end));
    held_.erase(0, held_.size() - end);
  }

 private:
  /// What is held is what would be stripped.
  void flush() override { held_.clear(); }

  const StripDecoder& step_;
  std::size_t start_left_;
  std::string held_;
};

class JoinStage : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    if (!first_) {
      emit(" ");
    }
    first_ = false;
    emit(token);
  }

 private:
  bool first_ = true;
};

bool fuses(const DecoderStep& step) {
  return std::holds_alternative<ByteLevelDecoder>(step) || std::holds_alternative<FuseDecoder>(step);
}

/// Whether the step gives the same when the text comes in fragments.
bool works_on_fragments(const DecoderStep& step) {
  if (const auto* replace = std::get_if<ReplaceDecoder>(&step)) {
    return replace->pattern.is_single_code_point();
  }
  return std::holds_alternative<FuseDecoder>(step) || std::holds_alternative<StripDecoder>(step);
}

}  // namespace

Result<void> check_decoder(const std::vector<DecoderStep>& steps) {
  bool fused = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (fused && !works_on_fragments(steps[i])) {
      return fail(ErrorCode::unsupported,
                  std::to_string(i) + ": this decoder works on tokens, but one before it makes them one text");
    }
    fused = fused || fuses(steps[i]);
  }
  return {};
}

std::string decode_token(const std::vector<DecoderStep>& steps, std::string_view token) {
  std::string text(token);
  const Overloaded apply{
      [&](const ByteLevelDecoder&) { text = from_byte_level(text); },
      [&](const ByteFallbackDecoder&) {
        if (const auto byte = byte_of(text)) {
          text.assign(1, *byte);
        }
      },
      [&](const ReplaceDecoder& step) { text = replaced(text, step); },
      [&](const MetaspaceDecoder& step) { text = replaced(text, step.replacement, " "); },
      [](const auto& /*step*/) {},
  };
  for (const DecoderStep& step : steps) {
    std::visit(apply, step);
  }
  return text;
}

std::unique_ptr<DecodeStage> make_decode_chain(const std::vector<DecoderStep>& steps, std::string& out) {
  const auto first_fusing = std::find_if(steps.begin(), steps.end(), fuses);
  std::unique_ptr<DecodeStage> chain = std::make_unique<AppendStage>(out);
  for (auto step = steps.end(); step != steps.begin();) {
    --step;
    const bool on_text = step > first_fusing;
    const Overloaded make{
        [&](const ByteLevelDecoder&) -> std::unique_ptr<DecodeStage> {
          return std::make_unique<ByteLevelStage>(std::move(chain));
        },
        [&](const ByteFallbackDecoder&) -> std::unique_ptr<DecodeStage> {
          return std::make_unique<ByteFallbackStage>(std::move(chain));
        },
        [&](const FuseDecoder&) -> std::unique_ptr<DecodeStage> { return std::move(chain); },
        [&](const ReplaceDecoder& replace) -> std::unique_ptr<DecodeStage> {
          return std::make_unique<ReplaceStage>(std::move(chain), replace);
        },
        [&](const StripDecoder& strip) -> std::unique_ptr<DecodeStage> {
          if (on_text) {
            return std::make_unique<StripTextStage>(std::move(chain), strip);
          }
          return std::make_unique<StripTokenStage>(std::move(chain), strip);
        },
        [&](const MetaspaceDecoder& metaspace) -> std::unique_ptr<DecodeStage> {
          return std::make_unique<MetaspaceStage>(std::move(chain), metaspace);
        },
        [&](const JoinDecoder&) -> std::unique_ptr<DecodeStage> {
          return std::make_unique<JoinStage>(std::move(chain));
        },
    };
    chain = std::visit(make, *step);
  }
  return chain;
}

}  // namespace troupe
