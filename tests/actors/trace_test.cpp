/// What the recorded event times show: while a step runs, the next one is planned and its blocks are allocated.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/actors/engine_support.hpp"

namespace troupe::test {
namespace {

struct Span {
  double begin = 0.0;
  double end = 0.0;
};

/// Events by category, then by number.
using Events = std::map<std::string, std::map<std::uint64_t, Span>>;

/// Runs four requests with steps of 5 ms, and returns the trace that the engine has written.
nlohmann::json record_trace(std::int32_t pipeline_depth) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("troupe_trace_" + std::to_string(pipeline_depth) + "_" +
                                                std::to_string(static_cast<long>(::getpid())) + ".json");
  EngineConfig config = small_config(64, 4);
  config.pipeline_depth = pipeline_depth;
  config.trace_file = path.string();
  Collector collector;
  const auto engine = start_simulated(config, slow_steps(std::chrono::milliseconds(5)));
  for (int i = 0; i < 4; ++i) {
    Request request = request_number(i);
    request.max_new_tokens = 30;
    REQUIRE(engine->submit(request, collector.callback()));
  }
  collector.wait_for(4);
  engine->shutdown(ShutdownMode::cancel, std::chrono::milliseconds(0));
  std::ifstream file(path);
  REQUIRE(file);
  nlohmann::json trace = nlohmann::json::parse(file);
  file.close();
  std::filesystem::remove(path);
  return trace;
}

Events read_events(const nlohmann::json& trace) {
  Events events;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      const double begin = event.at("ts");
      const double duration = event.at("dur");
      events[event.at("cat").get<std::string>()][event.at("args").at("number")] = {begin, begin + duration};
    }
  }
  return events;
}

/// How many steps were allocated within the execution of the step before them.
int count_overlapped(const Events& events) {
  int count = 0;
  for (const auto& [step, allocation] : events.at("allocate")) {
    const auto before = events.at("execute").find(step - 1);
    if (before != events.at("execute").end() && allocation.begin >= before->second.begin &&
        allocation.end <= before->second.end) {
      ++count;
    }
  }
  return count;
}

TEST_CASE("with two steps in flight the next step is allocated while a step runs") {
  const Events events = read_events(record_trace(2));
  const auto num_steps = static_cast<int>(events.at("execute").size());
  CHECK(num_steps >= 30);
  // On an idle machine it is nearly all of them; other work may delay the actors, but with one step in flight it is
  // none.
  CHECK(count_overlapped(events) >= 3);
  for (const auto& [step, execution] : events.at("execute")) {
    CAPTURE(step);
    REQUIRE(events.at("plan").contains(step));
    REQUIRE(events.at("allocate").contains(step));
    CHECK(events.at("plan").at(step).begin <= events.at("allocate").at(step).begin);
    CHECK(events.at("allocate").at(step).begin <= execution.begin);
  }
}

TEST_CASE("with one step in flight nothing is allocated while a step runs") {
  CHECK(count_overlapped(read_events(record_trace(1))) == 0);
}

TEST_CASE("a trace has a named row for each actor and numbered steps") {
  const nlohmann::json trace = record_trace(2);
  std::map<int, std::string> rows;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") {
      rows[event.at("tid")] = event.at("args").at("name");
    }
  }
  CHECK(rows.size() == 4);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      CHECK(rows.contains(event.at("tid").get<int>()));
      CHECK(event.at("dur").get<double>() >= 0.0);
    }
  }
}

}  // namespace
}  // namespace troupe::test
