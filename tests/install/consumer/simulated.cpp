#include <cstdio>
#include <future>

#include "actors/engine.hpp"
#include "actors/simulated_executor.hpp"

int main() {
  auto engine = troupe::Engine::create(
      {.num_blocks = 8},
      {.vocab_size = 512,
       .max_position_embeddings = 256,
       .layer_types = {troupe::AttentionType::full},
       .kv_bytes_per_token_and_layer = 1},
      [] { return std::make_unique<troupe::SimulatedExecutor>(troupe::SimulatedExecutorOptions{}); });
  std::promise<troupe::RequestOutput> answer;
  const auto id = (*engine)->submit({.prompt_ids = {1, 2, 3}, .max_new_tokens = 4},
                                    [&](const troupe::RequestOutput& output) { answer.set_value(output); });
  std::printf("%s: %zu tokens\n", id->c_str(), answer.get_future().get().token_ids.size());
}
