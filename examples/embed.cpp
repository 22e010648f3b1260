/// The engine in somebody's own actor system: a client actor that asks a model and prints the answer as it comes.
///
///   embed MODEL "Once upon a time"

#include <cstdio>
#include <memory>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_support.hpp"
#include "actors/engine_actor.hpp"
#include "model/detokenizer.hpp"
#include "model/load.hpp"

using namespace troupe;

ClientActor::behavior_type client(ClientActor::pointer self, const EngineActor& engine, const ModelFiles* model,
                                  const Request& request) {
  auto text = std::make_shared<Detokenizer>(*model->tokenizer, /*skip_special_tokens=*/true);
  self->request(engine, caf::infinite, SubmitRequest{request, self})
      .then([](const RequestAccepted&) {},
            [self](const caf::error& error) {
              std::fprintf(stderr, "%s\n", from_caf_error(error).message.c_str());
              self->quit();
            });
  return {[self, text, engine](const RequestOutput& output) {
    std::fputs(text->push(output.token_ids).c_str(), stdout);
    std::fflush(stdout);
    if (output.reason != FinishReason::none) {
      std::puts(text->finish().c_str());
      caf::anon_send(engine, Shutdown{});
      self->quit();
    }
  }};
}

int main(int argc, char** argv) {
  const auto model = open_model(argc > 2 ? argv[1] : "");
  if (!model || model->tokenizer == nullptr) {
    std::fprintf(stderr, "%s\n", model ? "the model has no tokenizer" : model.error().message.c_str());
    return 1;
  }
  caf::actor_system_config config;
  configure_caf(config, /*pool_threads=*/2);
  caf::actor_system system{config};
  EngineArguments arguments;
  arguments.config.num_blocks = 64;
  arguments.model = describe(*model, ComputeType::f32);
  arguments.make_executor = [&model] { return make_torch_executor(*model, {.dtype = ComputeType::f32}); };
  const EngineActor engine = spawn_engine(system, arguments);
  Request request;
  request.prompt_ids = model->tokenizer->encode(argv[2], true).value_or(std::vector<TokenId>{});
  request.max_new_tokens = 60;
  request.streaming = true;
  system.spawn(client, engine, &*model, request);
}
