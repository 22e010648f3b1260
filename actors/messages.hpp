#pragma once

/// Every message and every actor interface. Messages that may cross to another process have an `inspect` and a type id;
/// the others are marked as local at the end of the file. Names of actors are in upper case in comments.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/error.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

#include "actors/engine.hpp"
#include "actors/engine_config.hpp"
#include "actors/inspect.hpp"
#include "actors/request.hpp"
#include "actors/scheduler.hpp"
#include "actors/statistics.hpp"
#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/step_executor.hpp"
#include "cache/types.hpp"

/// Makes `ErrorCode` a category of `caf::error`; the error's context is its message.
CAF_ERROR_CODE_ENUM(troupe::ErrorCode, "troupe")

namespace troupe {

/// A CLIENT of the engine. It is monitored: when it ends, its requests are cancelled.
using ClientActor = caf::typed_actor<
    // Tokens of one of its requests. The last one of a request has a finish reason.
    caf::reacts_to<RequestOutput>>;

/// Asks the ENGINE to serve a request and to send its outputs to `client`.
struct SubmitRequest {
  Request request;
  ClientActor client;
};

/// The request was queued; outputs follow.
struct RequestAccepted {
  std::string id;
};

/// Ends a request. Its last output comes with reason `cancelled`.
struct CancelRequest {
  std::string id;
};

/// Makes children of a live request. Their outputs go to the parent's client.
struct ForkRequest {
  std::string id;
  std::int32_t num_children = 0;
  ForkOverrides overrides;
};

/// The children's ids, in order.
struct ForkAccepted {
  std::vector<std::string> ids;
};

/// Asks for the counters.
struct GetStatistics {};

/// Asks for a check of every block table, the block manager and the request states.
struct CheckInvariants {};

/// Answered when the executor and the cache stand, or with the error that prevented it.
struct AwaitReady {};

/// Ends the ENGINE; answered with the last statistics when every other actor has ended.
struct Shutdown {
  ShutdownMode mode = ShutdownMode::cancel;
  /// Time that draining may take.
  std::int64_t grace_ms = 0;
};

/// The answer of what has nothing to say but that it was done.
struct Done {};

/// Outputs of several requests, from the SCHEDULER to the ENGINE, in order for each request.
struct RequestOutputs {
  std::vector<RequestOutput> outputs;
};

/// INTERNAL: the time for draining is over.
struct GraceOver {};

/// Ends every request.
struct CancelAllRequests {};

/// Stops planning until `ResumeSteps`; answered with the result of `Scheduler::check_invariants`.
struct HoldSteps {};

/// Takes back one `HoldSteps`.
struct ResumeSteps {};

/// The orders of `ticket` are executed in `group`.
struct OrdersExecuted {
  GroupId group = 0;
  std::uint64_t ticket = 0;
};

/// Asks for a copy of the block tables of a group.
struct GetBlockTables {};

/// The block tables of a group.
struct BlockTables {
  std::unordered_map<RequestId, std::vector<BlockId>> tables;
};

/// Asks the MODEL RUNNER to make its executor, on its own thread.
struct MakeExecutor {
  ExecutorFactory make_executor;
};

/// What the ENGINE learns of the SCHEDULER: outputs.
using OutputSinkActor = caf::typed_actor<
    // Outputs to be passed on to the clients.
    caf::reacts_to<RequestOutputs>>;

/// The ENGINE: front door and supervisor. The only actor that clients know.
using EngineActor = OutputSinkActor::extend<
    // Queues a request, or refuses it with an error.
    caf::replies_to<SubmitRequest>::with<RequestAccepted>,
    // Ends a request.
    caf::replies_to<CancelRequest>::with<Done>,
    // Forks a request; all children or none.
    caf::replies_to<ForkRequest>::with<ForkAccepted>,
    // Returns the counters, also after a failure.
    caf::replies_to<GetStatistics>::with<EngineStatistics>,
    // Checks all bookkeeping at a point where no order is on its way.
    caf::replies_to<CheckInvariants>::with<Done>,
    // Waits until requests can be served.
    caf::replies_to<AwaitReady>::with<Done>,
    // Ends the engine.
    caf::replies_to<Shutdown>::with<EngineStatistics>,
    // INTERNAL: cancels what has not drained in time.
    caf::reacts_to<GraceOver>>;

/// The SCHEDULER: a shell around `Scheduler`.
using SchedulerActor = caf::typed_actor<
    // Queues a request, or refuses it with an error.
    caf::replies_to<Request>::with<RequestAccepted>,
    // Ends a request.
    caf::replies_to<CancelRequest>::with<Done>,
    // Ends all requests; their last outputs are sent before the answer.
    caf::replies_to<CancelAllRequests>::with<Done>,
    // Forks a request.
    caf::replies_to<ForkRequest>::with<ForkAccepted>,
    // What a step sampled.
    caf::reacts_to<StepResult>,
    // A CACHE ALLOCATOR has executed orders that release blocks.
    caf::reacts_to<OrdersExecuted>,
    // Returns the counters.
    caf::replies_to<GetStatistics>::with<EngineStatistics>,
    // Stops planning, so that the block tables stay as they are.
    caf::replies_to<HoldSteps>::with<Done>,
    // Goes on planning.
    caf::reacts_to<ResumeSteps>>;

/// Hands a step to the MODEL RUNNER; it starts when the inputs of all groups are there.
struct RunStep {
  std::shared_ptr<const StepPlan> plan;
  SchedulerActor scheduler;
};

/// The MODEL RUNNER. Has a thread of its own; owns the executor.
using ModelRunnerActor = caf::typed_actor<
    // Makes the executor, which may take long.
    caf::replies_to<MakeExecutor>::with<Done>,
    // Lets the executor allocate its cache.
    caf::replies_to<CacheShape>::with<Done>,
    // Runs a step as soon as its inputs are there.
    caf::reacts_to<RunStep>,
    // Inputs of one group for one step.
    caf::reacts_to<GroupInputs>>;

/// What one CACHE ALLOCATOR has to do; with a plan, it also builds the step's inputs.
struct ExecuteOrders {
  std::uint64_t ticket = 0;
  GroupOrders orders;
  /// Null for housekeeping.
  std::shared_ptr<const StepPlan> plan;
  SchedulerActor scheduler;
};

/// A CACHE ALLOCATOR. One for each layer group; owns the group's block tables.
using CacheAllocatorActor = caf::typed_actor<
    // Executes orders, sends a step's inputs to the MODEL RUNNER and tells the SCHEDULER what was released.
    caf::reacts_to<ExecuteOrders>,
    // Returns a copy of the block tables.
    caf::replies_to<GetBlockTables>::with<BlockTables>>;

/// Asks the DISPATCHER to submit a request and to call `on_output` with its outputs.
struct SubmitWithCallback {
  Request request;
  OutputCallback on_output;
};

/// Asks the DISPATCHER to fork a request and to call `on_output` with the children's outputs.
struct ForkWithCallback {
  ForkRequest fork;
  OutputCallback on_output;
};

/// The DISPATCHER: the client of all requests that come through the class `Engine`.
using DispatcherActor = ClientActor::extend<
    // Submits a request.
    caf::replies_to<SubmitWithCallback>::with<RequestAccepted>,
    // Forks a request.
    caf::replies_to<ForkWithCallback>::with<ForkAccepted>>;

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SubmitRequest& x) {
  return f(caf::meta::type_name("SubmitRequest"), x.request, x.client);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RequestAccepted& x) {
  return f(caf::meta::type_name("RequestAccepted"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CancelRequest& x) {
  return f(caf::meta::type_name("CancelRequest"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ForkRequest& x) {
  return f(caf::meta::type_name("ForkRequest"), x.id, x.num_children, x.overrides);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ForkAccepted& x) {
  return f(caf::meta::type_name("ForkAccepted"), x.ids);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GetStatistics&) {
  return f(caf::meta::type_name("GetStatistics"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Done&) {
  return f(caf::meta::type_name("Done"));
}

}  // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(troupe, (troupe::RequestOutput))
CAF_ADD_TYPE_ID(troupe, (troupe::SubmitRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::RequestAccepted))
CAF_ADD_TYPE_ID(troupe, (troupe::CancelRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::ForkRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::ForkAccepted))
CAF_ADD_TYPE_ID(troupe, (troupe::GetStatistics))
CAF_ADD_TYPE_ID(troupe, (troupe::EngineStatistics))
CAF_ADD_TYPE_ID(troupe, (troupe::Done))
CAF_END_TYPE_ID_BLOCK(troupe)

// Never leave the process: they hold pointers, floats without `inspect`, or are of no use outside of it.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CheckInvariants)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AwaitReady)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Shutdown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GraceOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RequestOutputs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CancelAllRequests)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::HoldSteps)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ResumeSteps)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::OrdersExecuted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GetBlockTables)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::BlockTables)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::MakeExecutor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CacheShape)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GroupInputs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StepResult)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ExecuteOrders)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::SubmitWithCallback)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ForkWithCallback)
