// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The routes of the batches of all ranks, as far as this thread needs them: its own batch, and the rows that
/// all batches name in the shards that it acts for, in the order (rank, position).
template <class Wire>
struct routing {
  row_route<Wire> own;
  std::vector<batch_findings> findings;  ///< by rank; one where a thread acts for the group
  bool is_whole = true;
  tensor<std::int64_t, Wire> rows_in;  ///< unless is_whole: the rows of the shard of this rank
  std::vector<std::int64_t> in_begin;  ///< [ranks + 1] where those of each rank begin in rows_in

  /// The rows of the shard of `owner`, one of the ranks that this thread acts for.
  [[nodiscard]] tensor_slice<const std::int64_t, Wire> rows_for(int owner) const {
    if (!is_whole) return rows_in.first(rows_in.rows());
    const auto [first, last] = own.group(owner);
    return own.rows.rows_between(first, last);
  }
};

/// The parts of a buffer of rows: part r begins at begin(r) and ends at end(r), in rows of `row_bytes`.
template <class Part, class Byte, class Begin, class End>
std::vector<Part> parts_of(Byte* data, std::size_t row_bytes, int ranks, const Begin& begin, const End& end) {
  std::vector<Part> parts(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    const auto first = static_cast<std::size_t>(begin(r)), last = static_cast<std::size_t>(end(r));
    parts[static_cast<std::size_t>(r)] = {data + first * row_bytes, (last - first) * row_bytes};
  }
  return parts;
}

/// Sends rows of the batch to the owners of their table rows: `of_batch` is in the order of the route,
/// `of_shard` in that of rows_in. With Back the other way round. `exchange(to, from)` moves the parts.
template <bool Back, class Wire, class T, class Space, class Exchange>
void move_by_route(collective& call, const routing<Wire>& by, tensor<T, Space>& of_batch,
                   tensor<T, Space>& of_shard, const Exchange& exchange) {
  const int ranks = call.ranks();
  const std::size_t row_bytes = of_batch.width() * sizeof(T);
  const auto own_begin = [&](int r) { return by.own.group(r).first; };
  const auto own_end = [&](int r) { return by.own.group(r).second; };
  const auto in_begin = [&](int r) { return by.in_begin[static_cast<std::size_t>(r)]; };
  const auto in_end = [&](int r) { return by.in_begin[static_cast<std::size_t>(r) + 1]; };
  auto* batch = reinterpret_cast<std::byte*>(of_batch.data());
  auto* shard = reinterpret_cast<std::byte*>(of_shard.data());
  if constexpr (Back)
    exchange(parts_of<outgoing_part>(shard, row_bytes, ranks, in_begin, in_end),
             parts_of<incoming_part>(batch, row_bytes, ranks, own_begin, own_end));
  else
    exchange(parts_of<outgoing_part>(batch, row_bytes, ranks, own_begin, own_end),
             parts_of<incoming_part>(shard, row_bytes, ranks, in_begin, in_end));
}

/// The same of buffers that payload() made: of `exec` that of the batch, of `there` that of the shard.
template <bool Back, class Exec, class Wire, class T, class Space>
void move_payload(collective& call, const Exec& exec, const Exec& there, const routing<Wire>& by,
                  tensor<T, Space>& of_batch, tensor<T, Space>& of_shard) {
  move_by_route<Back>(call, by, of_batch, of_shard, [&](const auto& to, const auto& from) {
    exchange_payload<Space>(call, Back ? there : exec, Back ? exec : there, to, from);
  });
}

/// What the ranks tell each other of their batches.
template <class Offer>
struct batch_meeting {
  std::vector<Offer> offers;         ///< by rank
  std::vector<std::int64_t> counts;  ///< [rank * ranks + owner] positions of a rank's batch for an owner
};

/// An offer of nothing.
struct no_offer {};

/// What a rank says of its batch, before the number of positions for each owner.
template <class Offer>
struct batch_notice {
  batch_findings found;
  Offer offer;
};

/// What all ranks say of their batches.
struct batch_notices {
  std::vector<std::byte> notices;      ///< by rank
  std::vector<std::int64_t> counts;    ///< [rank * ranks + owner]
  std::vector<std::int64_t> in_begin;  ///< see routing
};
/// Sends a rank's notice and its counts to the others: one phase.
[[nodiscard]] batch_notices exchange_notices(collective& call, std::span<const std::byte> notice,
                                             std::span<const std::int64_t> counts);

/// The ranks tell each other what they found in their batches, how many positions each owner gets, and an
/// offer: one phase. The findings of `scanned` are sent along.
template <class Wire, class Offer>
routing<Wire> meet_about_batches(collective& call, row_route<Wire>&& own, batch_findings scanned,
                                 const Offer& offer, batch_meeting<Offer>& met) {
  routing<Wire> made;
  made.own = std::move(own);
  made.is_whole = call.is_whole();
  scanned.out_of_range = made.own.report.out_of_range;
  scanned.first_position = made.own.report.first_position;
  scanned.first_index = made.own.report.first_index;
  scanned.positions = made.own.positions;
  scanned.signed_indices = made.own.signed_indices ? 1 : 0;
  if (call.is_whole()) {
    made.findings.push_back(scanned);
    return made;
  }
  const auto ranks = static_cast<std::size_t>(call.ranks());
  std::vector<std::int64_t> counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [first, last] = made.own.group(static_cast<int>(r));
    counts[r] = last - first;
  }
  const batch_notice<Offer> mine{scanned, offer};
  static_assert(std::is_trivially_copyable_v<Offer>);
  auto all = exchange_notices(call, std::as_bytes(std::span(&mine, 1)), counts);
  made.in_begin = std::move(all.in_begin);
  met.counts = std::move(all.counts);
  made.findings.reserve(ranks);
  met.offers.reserve(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    batch_notice<Offer> notice;
    std::memcpy(&notice, all.notices.data() + r * sizeof notice, sizeof notice);
    made.findings.push_back(notice.found);
    met.offers.push_back(notice.offer);
  }
  return made;
}

/// Sends the rows of the batches to their owners: one phase.
template <class Wire, class Table>
void exchange_rows(collective& call, const Table& table, routing<Wire>& made) {
  made.rows_in = tensor<std::int64_t, Wire>("rows of '" + table.label() + "'", made.in_begin.back());
  move_by_route<false>(call, made, made.own.rows, made.rows_in,
                       [&](const auto& to, const auto& from) { call.exchange(to, from); });
}

/// Routes the batches of all ranks: two phases. The findings of `scanned` are sent along.
template <class Wire, class Table>
routing<Wire> complete_routing(collective& call, const Table& table, row_route<Wire>&& own,
                               const batch_findings& scanned) {
  batch_meeting<no_offer> met;
  auto made = meet_about_batches(call, std::move(own), scanned, no_offer{}, met);
  if (!call.is_whole()) exchange_rows(call, table, made);
  return made;
}

}  // namespace ferry::detail
