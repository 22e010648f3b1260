#include "actors/engine_ledger.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

namespace troupe {

const ClientActor* Sessions::find(const std::string& id) const {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : &found->second;
}

std::vector<std::string> Sessions::requests_of(const caf::actor_addr& client) const {
  const auto found = requests_.find(client);
  if (found == requests_.end()) {
    return {};
  }
  return {found->second.begin(), found->second.end()};
}

void Sessions::open(const std::string& id, const ClientActor& client) {
  clients_.emplace(id, client);
  requests_[client.address()].insert(id);
}

void Sessions::close(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) {
    return;
  }
  const auto requests = requests_.find(found->second.address());
  requests->second.erase(id);
  if (requests->second.empty()) {
    requests_.erase(requests);
  }
  clients_.erase(found);
}

std::unordered_map<std::string, ClientActor> Sessions::take_all() {
  requests_.clear();
  return std::exchange(clients_, {});
}

OpenPromises::Key OpenPromises::add(caf::response_promise promise) {
  promises_.emplace(next_key_, std::move(promise));
  return next_key_++;
}

void OpenPromises::keep_all(const Error& error) {
  for (auto& [key, promise] : std::exchange(promises_, {})) {
    promise.deliver(to_caf_error(error));
  }
}

std::uint64_t EngineLedger::fail_sessions(const Error& error) {
  const auto open = sessions.take_all();
  for (const auto& [id, client] : open) {
    RequestOutput output;
    output.id = id;
    output.reason = FinishReason::failed;
    output.error = error;
    caf::anon_send(client, std::move(output));
  }
  return open.size();
}

void EngineLedger::close(const Error& error) {
  fail_sessions(error);
  promises.keep_all(error);
  const EngineChildren ending = std::exchange(children, {});
  if (ending.scheduler) {
    caf::anon_send_exit(ending.scheduler, caf::exit_reason::user_shutdown);
  }
  for (const CacheAllocatorActor& allocator : ending.allocators) {
    if (allocator) {
      caf::anon_send_exit(allocator, caf::exit_reason::user_shutdown);
    }
  }
  if (ending.runner) {
    caf::anon_send_exit(ending.runner, caf::exit_reason::user_shutdown);
  }
}

}  // namespace troupe
