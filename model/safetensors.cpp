#include "model/safetensors.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/error_text.hpp"
#include "model/json_file.hpp"
#include "model/json_node.hpp"
#include "model/safetensors_header.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Tensors by the shard that is to hold them.
using Shards = std::map<std::string, std::set<std::string>>;

/// Whether a name from an index stays below the directory.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  const auto stays = [](const fs::path& part) { return !part.empty() && part != ".." && part != "."; };
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
         std::ranges::all_of(path, stays);
}

/// Reads which shard holds which tensor.
Result<Shards> read_index(const fs::path& path) {
  const Result<nlohmann::json> document = read_json_file(path);
  if (!document) {
    return tl::unexpected(document.error());
  }
  JsonProblem problem;
  const JsonNode map = JsonNode(*document, "", problem)["weight_map"];
  Shards shards;
  for (const std::string& tensor : map.keys()) {
    const JsonNode entry = map[tensor];
    const std::string shard = entry.string();
    if (!problem.error && !is_inside(shard)) {
      entry.refuse(ErrorCode::malformed_file,
                   "expected the name of a file in the same directory, found " + in_quotes(shard));
    }
    if (problem.error) {
      return fail_in_file(path, *problem.error);
    }
    shards[shard].insert(tensor);
  }
  if (problem.error) {
    return fail_in_file(path, *problem.error);
  }
  return shards;
}

/// Adds the tensors of one file; of a shard only those in `wanted`, all of which it must have.
Result<void> add_file(const fs::path& path, const std::set<std::string>* wanted, std::vector<FileWeights::File>& files,
                      FileWeights::Tensors& tensors) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) {
    return tl::unexpected(file.error());
  }
  const std::span<const std::byte> bytes = file->bytes();
  Result<std::vector<SafetensorsEntry>> entries = parse_safetensors_header(bytes);
  if (!entries) {
    return fail_in_file(path, entries.error());
  }
  for (SafetensorsEntry& entry : *entries) {
    if (wanted == nullptr || wanted->contains(entry.name)) {
      StoredTensor tensor{.view = {.dtype = entry.dtype,
                                   .shape = std::move(entry.shape),
                                   .bytes = bytes.subspan(entry.begin, entry.end - entry.begin)},
                          .type_name = std::move(entry.type_name),
                          .file = files.size()};
      tensors.emplace(std::move(entry.name), std::move(tensor));
    }
  }
  if (wanted != nullptr) {
    for (const std::string& name : *wanted) {
      if (!tensors.contains(name)) {
        return fail(ErrorCode::malformed_file, path.string() + ": tensor " + in_quotes(name) +
                                                   ": missing, the index says that it is in this file");
      }
    }
  }
  files.push_back({.path = path, .data = std::move(*file)});
  return {};
}

}  // namespace

Result<std::shared_ptr<const FileWeights>> open_safetensors(const fs::path& directory) {
  std::vector<FileWeights::File> files;
  FileWeights::Tensors tensors;
  const fs::path index = directory / "model.safetensors.index.json";
  if (is_present(index)) {
    const Result<Shards> shards = read_index(index);
    if (!shards) {
      return tl::unexpected(shards.error());
    }
    for (const auto& [name, wanted] : *shards) {
      if (Result<void> added = add_file(directory / name, &wanted, files, tensors); !added) {
        return tl::unexpected(std::move(added).error());
      }
    }
  } else if (Result<void> added = add_file(directory / "model.safetensors", nullptr, files, tensors); !added) {
    return tl::unexpected(std::move(added).error());
  }
  return std::make_shared<const FileWeights>(directory, std::move(files), std::move(tensors));
}

}  // namespace troupe
