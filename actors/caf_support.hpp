#pragma once

/// What every actor of troupe and every program around them needs from CAF.

#include <cstdint>
#include <exception>

#include <caf/actor_system_config.hpp>
#include <caf/error.hpp>
#include <caf/scheduled_actor.hpp>

#include "actors/messages.hpp"
#include "cache/error.hpp"

namespace troupe {

/// Registers troupe's messages and errors. Every `actor_system` that runs troupe's actors needs it.
void register_messages(caf::actor_system_config& config);

/// Registers the messages and sets the scheduler up: `pool_threads` workers (at least 1) that share one queue. CAF's
/// default policy, work stealing, polls: it burns a third of a core and delays messages by milliseconds.
void configure_caf(caf::actor_system_config& config, std::int32_t pool_threads);

/// The same error for actors and for plain code. Errors of CAF become `shutting_down` (the actor is gone) or
/// `internal`.
[[nodiscard]] caf::error to_caf_error(const Error& error);
[[nodiscard]] Error from_caf_error(const caf::error& error);

/// The exit reason of an actor whose handler threw: `internal` with the exception's message.
[[nodiscard]] caf::error describe_exception(const caf::scheduled_actor& self, const std::exception_ptr& exception);

/// Replaces CAF's defaults, which print to the terminal or end the actor: a handler that throws ends its actor with
/// `describe_exception`; stray errors are dropped.
template <class Self>
void set_quiet_handlers(Self* self) {
  self->set_exception_handler([self](std::exception_ptr& exception) { return describe_exception(*self, exception); });
  self->set_error_handler([](caf::error&) {});
  self->set_down_handler([](caf::down_msg&) {});
}

}  // namespace troupe
