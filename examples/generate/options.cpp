#include "examples/generate/options.hpp"

#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "actors/request_checks.hpp"

namespace troupe::generate {

namespace {

constexpr const char* kDescription =
    "Answers prompts with a language model, all at once by continuous batching.\n\n"
    "Prompts are arguments, or JSON lines in a file or on standard input:\n"
    "  {\"id\": \"a\", \"prompt\": \"Once upon a time\", \"max_new_tokens\": 50}\n"
    "  {\"messages\": [{\"role\": \"user\", \"content\": \"Who are you?\"}], \"temperature\": 0.7, \"seed\": 1}\n"
    "  {\"prompt_ids\": [1, 2, 3], \"ignore_eos\": true}\n"
    "Fields of a line: id, one of prompt, messages and prompt_ids, then max_new_tokens, temperature, top_k, top_p,\n"
    "min_p, seed, ignore_eos, eos_token_ids, prefix_sharing, logprobs. They win over the options below.\n\n"
    "Results are JSON lines with id, text, token_ids, finish_reason (stop, length, cancelled, failed) and usage.\n"
    "A line that cannot be answered gives a line with its number and an error; the others are answered.";

constexpr const char* kFooter =
    "Exit codes: 0 every line was answered; 1 some were not; 2 wrong usage; 3 the model cannot be loaded or the\n"
    "output cannot be written; 130 interrupted by Ctrl-C (what is finished is written; press it twice to end at once).";

/// Sampling with what is left open at the values that do nothing.
SamplingParams to_sampling(const PromptParameters& parameters) {
  return {.temperature = parameters.temperature.value_or(0.0F),
          .top_k = parameters.top_k.value_or(0),
          .top_p = parameters.top_p.value_or(1.0F),
          .min_p = parameters.min_p.value_or(0.0F)};
}

template <class T>
CLI::Option* add_optional(CLI::App& app, const std::string& name, std::optional<T>& value, const std::string& text) {
  return app.add_option_function<T>(
      name, [&value](const T& given) { value = given; }, text);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine result;
  Options& options = result.options;
  options.executor.dtype = ComputeType::f32;

  CLI::App app(kDescription, "troupe-generate");
  app.footer(kFooter);
  app.set_version_flag("--version", TROUPE_VERSION);
  app.get_formatter()->column_width(36);

  app.add_option("text", options.arguments, "Prompts");
  app.add_option("--model", options.model, "Hugging Face model directory or .gguf file")->required();
  app.add_option("--prompts", options.prompts, "JSON lines: a file, or - for standard input");
  app.add_option("--out", options.out, "Where results go: a file, or - for standard output")->capture_default_str();
  app.add_flag("--chat", options.chat, "Take each plain prompt as a user's message of the model's chat template");
  app.add_flag("--stream", options.stream,
               "Print answers as text as they come, in input order; results then go only to a file given by --out");
  app.add_flag("--progress,!--no-progress", options.progress,
               "Show prompts and tokens per second on a terminal; this is the default, --no-progress turns it off");
  const std::map<std::string, ResultOrder> orders{{"input", ResultOrder::input}, {"finish", ResultOrder::finish}};
  app.add_option("--order", options.order, "Order of results: input or finish [input]")
      ->transform(CLI::CheckedTransformer(orders).description(""));

  auto* model = "Model";
  const std::map<std::string, ComputeType> dtypes{{"f32", ComputeType::f32}, {"bf16", ComputeType::bf16}};
  app.add_option("--dtype", options.executor.dtype, "Type to compute in: f32 or bf16 [f32]")
      ->transform(CLI::CheckedTransformer(dtypes).description(""))
      ->group(model);
  app.add_option("--threads", options.executor.threads, "Threads of the model; 0 takes all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(model);

  auto* engine = "Engine";
  EngineConfig& config = options.engine;
  app.add_option("--block-size", config.block_size, "Tokens in a cache block")->capture_default_str()->group(engine);
  app.add_option("--num-blocks", config.num_blocks, "Cache blocks; 0 fits them to the memory")
      ->capture_default_str()
      ->group(engine);
  app.add_option("--max-batch-tokens", config.max_batch_tokens, "Tokens of one forward pass")
      ->capture_default_str()
      ->group(engine);
  app.add_option("--scheduler", config.scheduler, "fifo or prefill_first")->capture_default_str()->group(engine);
  app.add_option("--pipeline-depth", config.pipeline_depth, "Steps in flight, 1 or 2")
      ->capture_default_str()
      ->group(engine);
  const std::map<std::string, bool> switches{{"on", true}, {"off", false}};
  app.add_option("--prefix-sharing", config.prefix_sharing, "Share cached prefixes: on or off [on]")
      ->transform(CLI::CheckedTransformer(switches).description(""))
      ->group(engine);
  app.add_option("--trace", config.trace_file, "Write a Chrome trace of all actors (open it with Perfetto)")
      ->group(engine);

  auto* sampling = "Sampling";
  PromptParameters& defaults = options.defaults;
  add_optional(app, "--max-new-tokens", defaults.max_new_tokens, "Longest answer; without it up to the context")
      ->check(CLI::PositiveNumber.description(""))
      ->group(sampling);
  add_optional(app, "--temperature", defaults.temperature, "0 is greedy [the model's, else 0]")->group(sampling);
  add_optional(app, "--top-k", defaults.top_k, "Keep the k most likely tokens; 0 keeps all")->group(sampling);
  add_optional(app, "--top-p", defaults.top_p, "Keep the likeliest tokens up to this probability")->group(sampling);
  add_optional(app, "--min-p", defaults.min_p, "Drop tokens below this share of the likeliest")->group(sampling);
  add_optional(app, "--seed", defaults.seed, "Seed of the first line; each further one gets the next number [0]")
      ->check(CLI::NonNegativeNumber.description(""))
      ->group(sampling);
  app.add_flag_function(
         "--ignore-eos", [&defaults](std::int64_t) { defaults.ignore_eos = true; },
         "Go on after an end-of-sequence token")
      ->group(sampling);

  try {
    app.parse(argc, argv);
    if (options.arguments.empty() == options.prompts.empty()) {
      throw CLI::ValidationError(options.prompts.empty()
                                     ? "no prompt: give some as arguments, or --prompts FILE, or --prompts -"
                                     : "prompts are either arguments or lines of --prompts, not both");
    }
    if (const Result<void> checked = validate(config); !checked) {
      throw CLI::ValidationError(checked.error().message);
    }
    if (const Result<void> checked = check_sampling(to_sampling(defaults)); !checked) {
      throw CLI::ValidationError(checked.error().message);
    }
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream errors;
    const int code = app.exit(error, out, errors);
    result.exit_code = code == 0 ? 0 : 2;
    result.message = code == 0 ? out.str() : errors.str();
  }
  return result;
}

}  // namespace troupe::generate
