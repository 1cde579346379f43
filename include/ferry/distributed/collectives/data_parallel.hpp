// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
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

/// The rows [first, second) of a batch of `rows` rows that rank `rank` of `ranks` works on: neighbours, in
/// the order of the ranks, ceil(rows / ranks) of them for each rank until none are left, as torch.chunk deals
/// them out. The parts of all ranks one after the other are the batch.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> split_range(std::int64_t rows, int rank,
                                                                       int ranks) {
  const std::int64_t most = rows / ranks + (rows % ranks != 0 ? 1 : 0);
  // rank * most may exceed 2^63 - 1 only if rank * most >= rows.
  const std::int64_t first = most == 0 || rank > rows / most ? rows : std::min(rows, rank * most);
  return {first, rows - first < most ? rows : first + most};
}

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
    detail::wire_copy<value, home> whole(exec, source);
    std::vector<detail::outgoing_part> out(static_cast<std::size_t>(call.ranks()));
    std::vector<detail::incoming_part> incoming(out.size());
    if (sends) {
      whole.take(exec, source);
      for (std::size_t r = 0; r < out.size(); ++r) {
        const auto [begin, end] = range_of(static_cast<int>(r));
        out[r] = {whole.bytes(begin), static_cast<std::size_t>(end - begin) * whole.row_bytes()};
      }
    }
    incoming[static_cast<std::size_t>(root)] = {part_copy.bytes(0), part_copy.buffer.size() * sizeof(value)};
    detail::exchange_payload<home>(call, exec, exec, out, incoming);
    call.close();
    part_copy.give(exec, sink);
    return {};
  });
}

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
    detail::wire_copy<value, home> part_copy(exec, source), dense(exec, sink);
    part_copy.take(exec, source);
    std::vector<detail::outgoing_part> out(static_cast<std::size_t>(call.ranks()));
    std::vector<detail::incoming_part> incoming(out.size());
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (counts[2 * r + 1] != 0) out[r] = {part_copy.bytes(0), part_copy.buffer.size() * sizeof(value)};
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

/// outputs[i] = replicas[i](inputs[i]), all at once: each on a thread that acts for a rank of this process,
/// so replicas may call collective verbs. As torch.nn.parallel.parallel_apply.
///
///   comm      the group
///   replicas  one function for each rank of this process, in the order of the ranks: a std::vector, say
///   inputs    one input for each of them
///
/// Returns a std::vector of the results in that order; nothing if the replicas return nothing. Throws
/// invalid_argument unless there are as many replicas and inputs as ranks of this process; exceptions of the
/// replicas as communicator::run does.
template <class Replicas, class Inputs>
auto parallel_apply(const communicator& comm, Replicas&& replicas, Inputs&& inputs) {
  using result = std::decay_t<decltype(replicas[std::size_t{}](inputs[std::size_t{}]))>;
  const auto first = static_cast<std::size_t>(comm.group()->first_local());
  const auto ranks = static_cast<std::size_t>(comm.group()->local_count());
  const auto functions = static_cast<std::size_t>(std::size(replicas));
  const auto count = static_cast<std::size_t>(std::size(inputs));
  if (functions != ranks || count != ranks)
    throw invalid_argument(detail::joined("ferry::parallel_apply: ", functions, " replicas and ", count,
                                          " inputs were given for the ", ranks, " ranks of this process"));
  if constexpr (std::is_void_v<result>) {
    comm.run([&](int rank) {
      const std::size_t i = static_cast<std::size_t>(rank) - first;
      replicas[i](inputs[i]);
    });
  } else {
    std::vector<std::optional<result>> results(ranks);
    comm.run([&](int rank) {
      const std::size_t i = static_cast<std::size_t>(rank) - first;
      results[i].emplace(replicas[i](inputs[i]));
    });
    std::vector<result> outputs;
    outputs.reserve(ranks);
    for (auto& result_of_rank : results) outputs.push_back(std::move(*result_of_rank));
    return outputs;
  }
}

}  // namespace ferry
