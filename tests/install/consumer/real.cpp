#include <cstdio>
#include <future>

#include "actors/engine.hpp"
#include "model/load.hpp"

int main(int /*argc*/, char** argv) {
  const auto files = troupe::open_model(argv[1]);
  auto engine = troupe::Engine::create({.num_blocks = 8}, troupe::describe(*files, troupe::ComputeType::f32), [&] {
    return troupe::make_torch_executor(*files, {.dtype = troupe::ComputeType::f32, .threads = 1});
  });
  std::promise<troupe::RequestOutput> answer;
  const auto id = (*engine)->submit({.prompt_ids = {5, 6, 7, 8}, .max_new_tokens = 8},
                                    [&](const troupe::RequestOutput& output) { answer.set_value(output); });
  std::printf("%s:", id->c_str());
  for (const troupe::TokenId token : answer.get_future().get().token_ids) {
    std::printf(" %d", token);
  }
  std::puts("");
}
