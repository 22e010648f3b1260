#include "model/model_files.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "model/chat_template_source.hpp"
#include "model/config_json.hpp"
#include "model/error_text.hpp"
#include "model/expected_tensors.hpp"
#include "model/file_weights.hpp"
#include "model/gguf_config.hpp"
#include "model/gguf_weights.hpp"
#include "model/json_file.hpp"
#include "model/mapped_file.hpp"
#include "model/safetensors.hpp"
#include "model/tokenizer_loader.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20U;
constexpr std::string_view kEmbeddingName = "model.embed_tokens.weight";
constexpr std::string_view kHeadName = "lm_head.weight";

/// Checks that the weights are those of the configuration, and notes what else is among them.
Result<void> check_weights(const FileWeights& weights, ModelFiles& files) {
  std::set<std::string> names;
  for (const ExpectedTensor& expected : expected_tensors(files.config)) {
    if (Result<void> checked = weights.check(expected.name, expected.shape); !checked) {
      return checked;
    }
    names.insert(expected.name);
  }
  std::string others;
  std::size_t num_others = 0;
  for (const std::string& name : weights.names()) {
    // Older programs stored the rotary frequencies as well.
    const bool is_needless = name.ends_with("rotary_emb.inv_freq") || name == "rope_freqs.weight" ||
                             (name == kHeadName && files.config.tie_word_embeddings);
    if (!names.contains(name) && !is_needless) {
      others += num_others == 0 ? in_quotes(name) : num_others < 3 ? ", " + in_quotes(name) : "";
      ++num_others;
    }
  }
  if (num_others > 0) {
    files.warnings.push_back(files.path.string() + ": " + std::to_string(num_others) +
                             " tensors that the model does not need: " + others + (num_others > 3 ? ", ..." : ""));
  }
  return {};
}

/// A configuration may say that the head is tied while the file has a head of its own. As in transformers, the file
/// wins if that differs from the embedding.
void untie_if_different(const FileWeights& weights, ModelFiles& files) {
  if (!files.config.tie_word_embeddings || !weights.contains(kHeadName) || !weights.contains(kEmbeddingName)) {
    return;
  }
  const TensorView head = *weights.tensor(kHeadName);
  const TensorView embedding = *weights.tensor(kEmbeddingName);
  const bool equal =
      head.dtype == embedding.dtype && head.shape == embedding.shape && std::ranges::equal(head.bytes, embedding.bytes);
  MappedFile::release(head.bytes);
  MappedFile::release(embedding.bytes);
  if (!equal) {
    files.config.tie_word_embeddings = false;
    files.warnings.push_back(
        files.path.string() +
        ": tie_word_embeddings is true, but lm_head.weight differs from the embedding and is used");
  }
}

Result<void> read_generation_config(ModelFiles& files) {
  const fs::path path = files.path / "generation_config.json";
  if (!is_present(path)) {
    return {};
  }
  const Result<std::string> text = read_text_file(path, kMaxConfigBytes);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<GenerationConfig> generation = parse_generation_config(*text, files.config.vocab_size);
  if (!generation) {
    return fail_in_file(path, generation.error());
  }
  files.generation = generation->defaults;
  if (!generation->eos_token_ids.empty()) {
    files.config.eos_token_ids = std::move(generation->eos_token_ids);
  }
  return {};
}

Result<void> read_tokenizer(ModelFiles& files) {
  if (is_present(files.path / "tokenizer.json")) {
    Result<std::unique_ptr<Tokenizer>> tokenizer = load_tokenizer(files.path);
    if (!tokenizer) {
      return tl::unexpected(std::move(tokenizer).error());
    }
    files.tokenizer = std::move(*tokenizer);
  } else if (is_present(files.path / "tokenizer.model")) {
    files.warnings.push_back(files.path.string() +
                             ": tokenizer.model is not supported without tokenizer.json, so only token ids are served");
  }
  return {};
}

void check_vocabulary(ModelFiles& files) {
  if (files.tokenizer != nullptr && files.tokenizer->vocab_size() > files.config.vocab_size) {
    files.warnings.push_back(files.path.string() + ": the tokenizer has " +
                             std::to_string(files.tokenizer->vocab_size()) + " tokens, the model only " +
                             std::to_string(files.config.vocab_size));
  }
}

Result<ModelFiles> open_directory(const fs::path& path) {
  ModelFiles files;
  files.path = path;
  const fs::path config_path = path / "config.json";
  const Result<std::string> text = read_text_file(config_path, kMaxConfigBytes);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<ModelConfig> config = parse_config(*text);
  if (!config) {
    return fail_in_file(config_path, config.error());
  }
  files.config = std::move(*config);
  Result<void> read = read_generation_config(files);
  if (!read) {
    return tl::unexpected(std::move(read).error());
  }
  const Result<std::shared_ptr<const FileWeights>> weights = open_safetensors(path);
  if (!weights) {
    return tl::unexpected(weights.error());
  }
  untie_if_different(**weights, files);
  read = check_weights(**weights, files);
  if (read) {
    read = read_tokenizer(files);
  }
  if (!read) {
    return tl::unexpected(std::move(read).error());
  }
  Result<std::optional<std::string>> chat_template = read_chat_template(path);
  if (!chat_template) {
    return tl::unexpected(std::move(chat_template).error());
  }
  files.chat_template = std::move(*chat_template);
  files.weights = *weights;
  return files;
}

Result<ModelFiles> open_gguf(const fs::path& path) {
  ModelFiles files;
  files.path = path;
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) {
    return tl::unexpected(std::move(file).error());
  }
  Result<GgufFile> parsed = parse_gguf(file->bytes());
  if (!parsed) {
    return fail_in_file(path, parsed.error());
  }
  Result<ModelConfig> config = read_gguf_config(*parsed);
  if (!config) {
    return fail_in_file(path, config.error());
  }
  files.config = std::move(*config);
  Result<std::optional<GgufVocabulary>> vocabulary = read_gguf_vocabulary(*parsed);
  if (!vocabulary) {
    return fail_in_file(path, vocabulary.error());
  }
  Result<std::optional<std::string>> chat_template = read_chat_template(*parsed);
  if (!chat_template) {
    return fail_in_file(path, chat_template.error());
  }
  files.chat_template = std::move(*chat_template);
  const Result<std::shared_ptr<const FileWeights>> weights =
      make_gguf_weights(path, std::move(*file), *parsed, files.config);
  if (!weights) {
    return tl::unexpected(weights.error());
  }
  if (Result<void> checked = check_weights(**weights, files); !checked) {
    return tl::unexpected(std::move(checked).error());
  }
  files.weights = *weights;
  if (*vocabulary) {
    Result<std::unique_ptr<Tokenizer>> tokenizer = make_tokenizer(std::move(**vocabulary));
    if (!tokenizer) {
      return fail_in_file(path, tokenizer.error());
    }
    files.tokenizer = std::move(*tokenizer);
  }
  return files;
}

}  // namespace

Result<ModelFiles> open_model(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return fail(ErrorCode::io_error,
                path.string() + ": " + (error ? error.message() : std::string("no such file or directory")));
  }
  Result<ModelFiles> files = fs::is_directory(status) ? open_directory(path) : open_gguf(path);
  if (files) {
    check_vocabulary(*files);
  }
  return files;
}

}  // namespace troupe
