// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/collectives/detail/wire_copy.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace ferry {

/// array = that of rank `root`, on all ranks: the replicas of a model begin with the same values, as after
/// torch.nn.parallel.replicate.
///
///   exec   the execution space instance that copies
///   comm   the group
///   array  an array in any memory space, of the same type and extents on all ranks
///   root   the rank whose values the others get
///
/// Collective, see communicator. Does nothing for a thread that acts for the group as a whole. Blocks until
/// the values are there. Throws invalid_argument for a rank that the group does not have; protocol_error
/// if the arrays differ; peer_error if another rank failed.
template <class Exec, class Array>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket replicate(
    const Exec& exec, const communicator& comm, Array&& array, int root = 0) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Array>();
  detail::require_output<Array>();
  detail::require_reach<Exec, Array>();
  const auto ref = make_ref(array);
  using value = typename decltype(ref)::value_type;
  auto note = detail::note_of_array<value>("replicate", ref, 0);
  detail::collective call(comm, note.add(" from rank").add_number(root));
  return call.guarded([&]() -> ticket {
    if (root < 0 || root >= call.ranks())
      throw invalid_argument(detail::joined("ferry::replicate: there is no rank ", root, " among the ",
                                            call.ranks(), " of the group"));
    if (call.is_whole() || call.ranks() == 1) return {};
    const bool sends = call.rank() == root;
    using home = detail::payload_space<Exec, typename decltype(ref)::memory_space>;
    detail::wire_copy<value, home> array_copy(exec, ref);
    if (sends) array_copy.take(exec, ref);
    const std::size_t bytes = array_copy.buffer.size() * sizeof(value);
    std::vector<detail::outgoing_part> outgoing(static_cast<std::size_t>(call.ranks()));
    std::vector<detail::incoming_part> incoming(outgoing.size());
    for (std::size_t r = 0; r < outgoing.size(); ++r)
      if (sends && static_cast<int>(r) != root) outgoing[r] = {array_copy.bytes(0), bytes};
    if (!sends) incoming[static_cast<std::size_t>(root)] = {array_copy.bytes(0), bytes};
    detail::exchange_payload<home>(call, exec, exec, outgoing, incoming);
    call.close();
    if (!sends) array_copy.give(exec, ref);
    return {};
  });
}

}  // namespace ferry
