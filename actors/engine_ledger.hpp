#pragma once

/// What the ENGINE owes others. It outlives the actor's state, so that it is paid also when the engine is killed.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/response_promise.hpp>

#include "actors/caf_support.hpp"
#include "actors/messages.hpp"

namespace troupe {

/// The requests in flight and who gets their outputs.
class Sessions {
 public:
  [[nodiscard]] bool empty() const noexcept { return clients_.empty(); }
  /// Null if there is no such request.
  [[nodiscard]] const ClientActor* find(const std::string& id) const;
  [[nodiscard]] bool has_client(const caf::actor_addr& client) const { return requests_.contains(client); }
  /// Ids of the client's requests.
  [[nodiscard]] std::vector<std::string> requests_of(const caf::actor_addr& client) const;

  void open(const std::string& id, const ClientActor& client);
  void close(const std::string& id);
  /// Closes all.
  [[nodiscard]] std::unordered_map<std::string, ClientActor> take_all();

 private:
  std::unordered_map<std::string, ClientActor> clients_;
  std::unordered_map<caf::actor_addr, std::unordered_set<std::string>> requests_;
};

/// Promises that were not kept yet. CAF tells nobody if one is dropped.
class OpenPromises {
 public:
  using Key = std::uint64_t;

  [[nodiscard]] Key add(caf::response_promise promise);

  template <class Answer>
  void keep(Key key, Answer answer) {
    if (auto entry = promises_.extract(key)) {
      entry.mapped().deliver(std::move(answer));
    }
  }

  void keep_all(const Error& error);

 private:
  std::unordered_map<Key, caf::response_promise> promises_;
  Key next_key_ = 0;
};

/// The actors that the ENGINE has spawned. A handle is null before its actor is spawned and after it has ended.
struct EngineChildren {
  SchedulerActor scheduler;
  std::vector<CacheAllocatorActor> allocators;
  ModelRunnerActor runner;
};

struct EngineLedger {
  Sessions sessions;
  OpenPromises promises;
  EngineChildren children;

  /// Sends each open request its last output: `failed` with this error. Returns how many there were.
  std::uint64_t fail_sessions(const Error& error);

  /// Pays everything: requests fail, promises are answered with the error, children are told to end.
  void close(const Error& error);
};

}  // namespace troupe
