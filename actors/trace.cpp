#include "actors/trace.hpp"

#include <chrono>
#include <fstream>
#include <ios>

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using nlohmann::json;

/// The format's unit is the microsecond; fractions keep the nanoseconds.
double to_microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000.0; }

json thread_name(std::size_t tid, const std::string& name) {
  return {{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", tid}, {"args", {{"name", name}}}};
}

json complete_event(std::size_t tid, const TraceLane::Event& event) {
  return {{"ph", "X"},
          {"pid", 1},
          {"tid", tid},
          {"cat", event.name},
          {"name", event.name + (" " + std::to_string(event.number))},
          {"ts", to_microseconds(event.started_ns)},
          {"dur", to_microseconds(event.ended_ns - event.started_ns)},
          {"args", {{"number", event.number}}}};
}

}  // namespace

std::int64_t steady_now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void TraceLane::add(const Event& event) {
  if (events_.size() < max_events_) {
    events_.push_back(event);
  } else {
    ++dropped_events_;
  }
}

TraceScope::TraceScope(const std::shared_ptr<TraceLane>& lane, const char* name, std::uint64_t number)
    : lane_(lane.get()) {
  if (lane_ != nullptr) {
    event_ = {name, number, steady_now_ns(), 0};
  }
}

TraceScope::~TraceScope() {
  if (lane_ != nullptr) {
    event_.ended_ns = steady_now_ns();
    lane_->add(event_);
  }
}

std::shared_ptr<TraceLane> TraceRecorder::add_lane(std::string name) {
  return lanes_.emplace_back(std::make_shared<TraceLane>(std::move(name), kMaxEventsPerLane));
}

Result<void> TraceRecorder::write(const std::string& path) const {
  std::ofstream file(path);
  std::uint64_t dropped_events = 0;
  const char* separator = "";
  // Event by event, because a document of all of them would take many times the memory of the lanes.
  file << R"({"displayTimeUnit":"ms","traceEvents":[)";
  for (std::size_t tid = 0; tid < lanes_.size(); ++tid) {
    file << separator << thread_name(tid, lanes_[tid]->name());
    separator = ",\n";
    for (const TraceLane::Event& event : lanes_[tid]->events()) {
      file << separator << complete_event(tid, event);
    }
    dropped_events += lanes_[tid]->dropped_events();
  }
  file << R"(],"otherData":)" << json{{"dropped_events", dropped_events}} << "}\n";
  file.close();
  if (!file) {
    return fail(ErrorCode::io_error, "cannot write the trace file " + path);
  }
  return {};
}

}  // namespace troupe
