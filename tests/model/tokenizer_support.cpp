#include "tokenizer_support.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <zlib.h>

#include "model/gguf_config.hpp"
#include "model/gguf_file.hpp"
#include "model/mapped_file.hpp"
#include "model/tokenizer_loader.hpp"
#include "model_files_support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {

using nlohmann::json;

std::vector<json> read_json_lines(const std::string& name) {
  const std::string path = std::string(TROUPE_TEST_DATA) + "/" + name;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::string text;
  std::array<char, 1 << 16> chunk{};
  int num_read = 0;
  while (file && (num_read = gzread(file.get(), chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(num_read));
  }
  if (num_read < 0 || text.empty()) {
    throw std::runtime_error(path + " cannot be read");
  }
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(json::parse(line));
  }
  return lines;
}

json base_tokenizer(const std::string& name) {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/tokenizers/" + name + ".json");
  return json::parse(file);
}

Result<std::unique_ptr<Tokenizer>> load_text(std::string_view tokenizer_json, std::string_view config) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer_json);
  if (!config.empty()) {
    folder.write("tokenizer_config.json", config);
  }
  return load_tokenizer(folder.path());
}

std::unique_ptr<Tokenizer> load_document(const json& document, std::string_view config) {
  auto tokenizer = load_text(document.dump(), config);
  if (!tokenizer) {
    FAIL(tokenizer.error().message);
  }
  return std::move(*tokenizer);
}

GgufVocabulary read_vocabulary(const std::filesystem::path& path) {
  const Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) {
    throw std::runtime_error(mapped.error().message);
  }
  const Result<GgufFile> file = parse_gguf(mapped->bytes());
  if (!file) {
    throw std::runtime_error(file.error().message);
  }
  auto vocabulary = read_gguf_vocabulary(*file);
  if (!vocabulary || !*vocabulary) {
    throw std::runtime_error(path.string() + ": no vocabulary");
  }
  return **std::move(vocabulary);
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text, bool add_special_tokens) {
  auto ids = tokenizer.encode(text, add_special_tokens);
  if (!ids) {
    FAIL(ids.error().message);
  }
  return std::move(*ids);
}

}  // namespace troupe::test
