#include "examples/generate/text_stream.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::generate {

Result<void> TextStream::add(std::size_t place, const std::string& text) {
  kept_[place].text += text;
  return print();
}

Result<void> TextStream::finish(std::size_t place) {
  Kept& kept = kept_[place];
  kept.text += '\n';
  kept.finished = true;
  return print();
}

Result<void> TextStream::print() {
  for (auto kept = kept_.find(current_); kept != kept_.end(); kept = kept_.find(current_)) {
    const std::string text = std::exchange(kept->second.text, {});
    if (std::fwrite(text.data(), 1, text.size(), out_) != text.size() || std::fflush(out_) != 0) {
      return fail(ErrorCode::io_error, std::string("cannot print: ") + std::strerror(errno));
    }
    if (!kept->second.finished) {
      break;
    }
    kept_.erase(kept);
    ++current_;
  }
  return {};
}

}  // namespace troupe::generate
