#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/engine_config.hpp"
#include "examples/generate/prompt_line.hpp"
#include "model/load.hpp"

namespace troupe::generate {

enum class ResultOrder : std::uint8_t { input, finish };

struct Options {
  std::string model;
  /// Prompts given as arguments; empty if `prompts` is not.
  std::vector<std::string> arguments;
  /// File of JSON lines, "-" for standard input, empty for none.
  std::string prompts;
  /// Where results go, "-" for standard output.
  std::string out = "-";
  /// Whether plain prompts go through the chat template as a user's message.
  bool chat = false;
  bool stream = false;
  /// Whether to show how far the work is, if standard error is a terminal.
  bool progress = true;
  ResultOrder order = ResultOrder::input;
  ExecutorOptions executor;
  EngineConfig engine;
  /// What lines leave open.
  PromptParameters defaults;
};

/// What a command line asks for: to run with options, or to end at once.
struct CommandLine {
  Options options;
  /// Set if the program is to end: 0 after `--help` and `--version`, 2 after a mistake. `message` says the rest.
  std::optional<int> exit_code;
  std::string message;
};

/// Parses and checks the arguments of main().
[[nodiscard]] CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace troupe::generate
