// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/collectives/detail/wire_copy.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

/// The rows [first, second) of a batch of `rows` rows that rank `rank` of `ranks` works on: neighbours, in
/// the order of the ranks, ceil(rows / ranks) of them for each rank until none are left, as torch.chunk deals
/// them out. The parts of all ranks one after the other are the batch.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> split_range(std::int64_t rows, int rank, int ranks);

/// The rows of a batch that the calling thread's rank works on, as a slice of the batch, which every rank
/// has; all rows for a thread that acts for the group as a whole. No rank waits for another one.
///
///   batch  a ferry::tensor or a slice of one
///
/// See split_range for the rows. The slice may be empty.
template <class Batch>
[[nodiscard]] auto split(const communicator& comm, Batch& batch) requires requires {
  batch.rows_between(0, 0);
}
{
  const int rank = comm.acting_rank();
  const auto rows = static_cast<std::int64_t>(batch.rows());
  const auto [first, last] =
      rank < 0 ? std::pair{std::int64_t{0}, rows} : split_range(rows, rank, comm.size());
  return batch.rows_between(first, last);
}

/// part = the rows of rank `root`'s batch that this rank works on, if only that rank has it; as
/// torch.nn.parallel.scatter.
///
///   exec   the execution space instance that copies
///   comm   the group
///   batch  the batch on rank `root`; other ranks pass an array of the same type, usually without rows
///   part   split_range(rows of the batch, rank, ranks) rows, as wide as the batch
///   root   the rank that has the batch
///
/// Collective, see communicator. For a thread that acts for the group as a whole part = batch. Blocks until
/// the rows are there. Throws invalid_argument for extents that do not fit, and peer_error if that
/// happened to another rank.
template <class Exec, class Batch, class Part>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket split(
    const Exec& exec, const communicator& comm, const Batch& batch, Part&& part, int root = 0) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Batch>();
  detail::require_rows<Part>();
  detail::require_output<Part>();
  detail::require_reach<Exec, Batch>();
  detail::require_reach<Exec, Part>();
  const auto sink = make_ref(part);
  const auto source = detail::read_only(make_ref(batch));
  using value = typename decltype(sink)::value_type;
  static_assert(std::is_same_v<const value, typename decltype(source)::value_type>,
                "ferry: split moves rows as they are, so batch and part must have the same element type.");
  auto note = detail::note_of_array<value>("split", sink, 1);
  detail::collective call(comm, note.add(" from rank").add_number(root));
  return call.guarded([&]() -> ticket {
    if (root < 0 || root >= call.ranks())
      throw invalid_argument(detail::joined("ferry::split: there is no rank ", root, " among the ",
                                            call.ranks(), " of the group"));
    const bool sends = call.is_whole() || call.rank() == root;
    std::int64_t rows = sends ? source.rows() : 0;
    if (!call.is_whole()) {
      const auto counts = call.all_gather(std::span<const std::int64_t>(&rows, 1));
      rows = counts[static_cast<std::size_t>(root)];
    }
    const auto range_of = [&](int r) { return split_range(rows, r, call.ranks()); };
    const auto [first, last] = call.is_whole() ? std::pair{std::int64_t{0}, rows} : range_of(call.rank());
    if (sink.rows() != last - first || (sends && source.width() != sink.width()))
      throw invalid_argument(detail::joined(
          "ferry::split: ", sink.describe(), " was given for ", last - first, " of the ", rows,
          " rows of the batch", (sends ? detail::joined(" ", source.describe()) : std::string())));
    if (call.is_whole()) return copy(exec, source, sink);
    using home = detail::payload_space<Exec, typename decltype(sink)::memory_space,
                                       typename decltype(source)::memory_space>;
    detail::wire_copy<value, home> part_copy(exec, sink);
    auto whole = detail::payload<value, home>(exec, "batch", sends ? source.size() : 0);
    std::vector<detail::outgoing_part> out(static_cast<std::size_t>(call.ranks()));
    std::vector<detail::incoming_part> incoming(out.size());
    if (sends) {
      auto dense = part_copy.like;
      dense.extents = source.extents;
      dense.rank = source.rank;
      dense.make_dense();
      dense.data = whole.data();
      copy(exec, source, dense).join();
      for (std::size_t r = 0; r < out.size(); ++r) {
        const auto [begin, end] = range_of(static_cast<int>(r));
        out[r] = {reinterpret_cast<const std::byte*>(whole.data() + begin * sink.width()),
                  static_cast<std::size_t>(end - begin) * part_copy.row_bytes()};
      }
    }
    incoming[static_cast<std::size_t>(root)] = {part_copy.bytes(0), part_copy.buffer.size() * sizeof(value)};
    detail::exchange_payload<home>(call, exec, exec, out, incoming);
    call.close();
    part_copy.give(exec, sink);
    return {};
  });
}

}  // namespace ferry
