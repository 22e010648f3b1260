#include "actors/caf_support.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <caf/atom.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace troupe {

namespace {

constexpr auto kCategory = caf::detail::error_factory<ErrorCode>::category;

std::string render_error(std::uint8_t code, caf::atom_value, const caf::message& context) {
  std::string text(to_string(static_cast<ErrorCode>(code)));
  if (context.match_elements<std::string>()) {
    text += ": " + context.get_as<std::string>(0);
  }
  return text;
}

}  // namespace

void register_messages(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::troupe>();
  config.add_error_category(kCategory, render_error);
}

void configure_caf(caf::actor_system_config& config, std::int32_t pool_threads) {
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", static_cast<std::size_t>(std::max(pool_threads, 1)));
  register_messages(config);
}

caf::error to_caf_error(const Error& error) { return caf::make_error(error.code, error.message); }

Error from_caf_error(const caf::error& error) {
  if (!error) {
    return {};
  }
  if (error.category() == kCategory) {
    const bool has_message = error.context().match_elements<std::string>();
    return {static_cast<ErrorCode>(error.code()), has_message ? error.context().get_as<std::string>(0) : std::string()};
  }
  if (error == caf::sec::request_receiver_down) {
    return {ErrorCode::shutting_down, "the engine has ended"};
  }
  return {ErrorCode::internal, caf::to_string(error)};
}

caf::error describe_exception(const caf::scheduled_actor& self, const std::exception_ptr& exception) {
  std::string what = "an exception of unknown type";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): `what` says so already
  }
  return to_caf_error({ErrorCode::internal, std::string(self.name()) + " threw: " + what});
}

}  // namespace troupe
