// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/runtime/ticket.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

template <class T>
inline constexpr bool is_earlier_work = ExecutionSpace<T> || std::is_same_v<T, ticket>;
template <class Result>
inline constexpr bool is_earlier_work<future<Result>> = true;

/// Throws if `earlier` is an instance that is being captured.
template <class Earlier>
void require_no_capture([[maybe_unused]] const Earlier& earlier) {
  if constexpr (ExecutionSpace<Earlier>)
    if (execution_backend<Earlier>::capturing(earlier))
      throw invalid_argument(
          "ferry::after: the earlier instance is being captured into a graph, so what it is given runs only when that graph is launched; end the capture, launch the graph, and order what comes after that");
}

template <class Exec, class Earlier>
void follow(const Exec& exec, const Earlier& earlier) {
  if constexpr (ExecutionSpace<Earlier>) {
    using backend = execution_backend<Earlier>;
    if constexpr (std::is_same_v<Exec, Earlier> && !is_host_exec<Exec>)
      if (backend::id_of(exec) == backend::id_of(earlier)) return;
    if (const event_handle reached = engine::get(earlier)->record(earlier))
      execution_backend<Exec>::wait_for(exec, *reached);
  } else if constexpr (requires { earlier.storage()->completion; }) {
    if (earlier.storage() != nullptr && earlier.storage()->completion != nullptr)
      execution_backend<Exec>::wait_for(exec, *earlier.storage()->completion);
  } else {
    earlier.then(exec);
  }
}

}  // namespace detail

/// Orders all later work of `exec` after earlier work, also of kernels that are not ferry's.
///
///   exec     the execution space instance that comes later
///   earlier  one or several of
///            an execution space instance  all work enqueued on it so far, also that of other libraries
///            a ticket or a future         its verb; errors are still thrown by its wait()
///            a row_plan                   the making of the plan
///
/// Between device instances nothing blocks: `exec` waits on the device. Where one of the two is an instance
/// of a host execution space, the calling thread waits, and the earlier work has ended when the call returns.
/// An instance is always ordered after itself. After the ticket of a captured verb means after the launches
/// of its graph so far.
///
/// Throws invalid_argument if an instance is being captured into a graph, whose order is its own; then
/// nothing is ordered. Throws it, too, if the capture of a ticket's verb has not ended.
template <class Exec, class... Earlier>
void after(const Exec& exec, const Earlier&... earlier) {
  static_assert(
      ExecutionSpace<Exec>,
      "ferry: the first argument of after is the instance of a Kokkos execution space that comes later.");
  static_assert(sizeof...(Earlier) >= 1,
                "ferry: after needs to be told what comes earlier: instances, tickets, futures or plans.");
  static_assert(
      (detail::is_earlier_work<Earlier> && ...),
      "ferry: what comes earlier must be instances of Kokkos execution spaces, tickets, futures or plans.");
  detail::require_own_kokkos(exec, "after");
  if (execution_backend<Exec>::capturing(exec))
    throw invalid_argument(
        "ferry::after: the instance is being captured into a graph, whose order is its own; order the instance that launches the graph");
  (detail::require_no_capture(earlier), ...);
  (detail::follow(exec, earlier), ...);
}

}  // namespace ferry
