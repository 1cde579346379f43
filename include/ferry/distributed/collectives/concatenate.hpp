// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/collectives/detail/wire_copy.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry {

/// whole = the rows of all ranks' parts, one after the other by rank, on every rank that asks; as
/// torch.nn.parallel.gather. The parts may differ in their number of rows.
///
///   exec   the execution space instance that copies
///   comm   the group
///   part   this rank's rows
///   whole  as many rows as all parts together, as wide as they are; a rank that passes an array without rows
///          gets none
///
/// Collective, see communicator. For a thread that acts for the group as a whole whole = part. Blocks until
/// the rows are there. Throws invalid_argument for extents that do not fit, and peer_error if that
/// happened to another rank.
template <class Exec, class Part, class Whole>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket concatenate(
    const Exec& exec, const communicator& comm, const Part& part, Whole&& whole) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Part>();
  detail::require_rows<Whole>();
  detail::require_output<Whole>();
  detail::require_reach<Exec, Part>();
  detail::require_reach<Exec, Whole>();
  const auto sink = make_ref(whole);
  const auto source = detail::read_only(make_ref(part));
  using value = typename decltype(sink)::value_type;
  static_assert(
      std::is_same_v<const value, typename decltype(source)::value_type>,
      "ferry: concatenate moves rows as they are, so parts and whole must have the same element type.");
  auto note = detail::note_of_array<value>("concatenate", source, 1);
  detail::collective call(comm, note);
  return call.guarded([&]() -> ticket {
    const std::array<std::int64_t, 2> lengths{source.rows(), !call.is_whole() && sink.rows() == 0 ? 0 : 1};
    std::vector<std::int64_t> counts(lengths.begin(), lengths.end());
    if (!call.is_whole()) counts = call.all_gather(std::span<const std::int64_t>(lengths));
    std::int64_t rows = 0;
    for (std::size_t r = 0; r < counts.size(); r += 2) rows += counts[r];
    const bool takes = lengths[1] != 0;
    if (takes && (sink.rows() != rows || (rows != 0 && sink.width() != source.width())))
      throw invalid_argument(detail::joined("ferry::concatenate: ", sink.describe(), " was given for the ",
                                            rows, " rows of all parts, of which ", source.describe(),
                                            " is one"));
    if (call.is_whole()) return copy(exec, source, sink);
    using home = detail::payload_space<Exec, typename decltype(sink)::memory_space,
                                       typename decltype(source)::memory_space>;
    auto part_payload = detail::payload<value, home>(exec, "part", source.size());
    auto dense = detail::wire_copy<value, home>(exec, sink);
    auto like = dense.like;
    like.extents = source.extents;
    like.rank = source.rank;
    like.make_dense();
    like.data = part_payload.data();
    copy(exec, source, like).join();
    std::vector<detail::outgoing_part> out(static_cast<std::size_t>(call.ranks()));
    std::vector<detail::incoming_part> incoming(out.size());
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (counts[2 * r + 1] != 0)
        out[r] = {reinterpret_cast<const std::byte*>(part_payload.data()),
                  part_payload.size() * sizeof(value)};
      if (takes)
        incoming[r] = {dense.bytes(begin), static_cast<std::size_t>(counts[2 * r]) * dense.row_bytes()};
      begin += counts[2 * r];
    }
    detail::exchange_payload<home>(call, exec, exec, out, incoming);
    call.close();
    if (takes) dense.give(exec, sink);
    return {};
  });
}

}  // namespace ferry
