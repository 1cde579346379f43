// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/write_winners.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// A scatter of ranks under duplicates::last and first without sorting, as write_winners.hpp does it for one
/// device: the owner of a shard finds which items of all batches win their rows, and reads the values of
/// these alone.
namespace ferry::kernels {

/// join_lists, after which each item competes for its row. One thread for each item.
template <class Atomics, bool Last>
struct join_and_claim {
  join_lists lists;
  winner_table table;
  std::uint32_t* slot_of;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    slot_of[i] = table.template claim<Atomics, Last>(lists.join(i), i);
  }
};

/// Items in blocks of neighbours. Neighbouring blocks come from different parts of the list, its strands, so
/// that items of this device and of others are under way at once, although the list has them one after the
/// other.
struct item_strands {
  static constexpr std::int64_t block = 16, strands = 32;

  std::int64_t items;
  std::int64_t blocks;  ///< of a strand

  explicit item_strands(std::int64_t count)
      : items(count), blocks((count + block * strands - 1) / (block * strands)) {}
  /// The numbers that operator() takes.
  [[nodiscard]] std::int64_t numbers() const { return block * blocks * strands; }
  /// The item of a number; not less than `items` if it has none.
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t number) const {
    const std::int64_t whole = number / block;
    return (whole % strands * blocks + whole / strands) * block + number % block;
  }
};

/// The source of the gather that writes the shard: item order(k) reads its values, which begin at
/// begins[item], and writes its row if it has won that.
struct winning_values {
  winner_table table;
  const std::uint32_t* slot_of;
  const std::int64_t* begins;
  item_strands order;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const {
    const std::int64_t item = order(k);
    if (item >= order.items) return -1;
    const std::int64_t begin = begins[item];
    return table.winner(slot_of[item]) == item ? begin : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return table.row(slot_of[order(k)]); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The values of all batches, which begin whole units of `unit` bytes after `lowest`.
template <class T>
struct offered_rows {
  using value_type = const T;
  const T* lowest;
  std::int64_t unit;
};
template <class T>
bool in_units_of(std::size_t bytes, const offered_rows<T>& rows) {
  return rows.unit % static_cast<std::int64_t>(bytes) == 0;
}
template <class T, class Source>
rows_for_reading<T, Source> read_in_units(std::size_t bytes, const offered_rows<T>& rows,
                                          const Source& source) {
  return {rows.lowest, rows.unit / static_cast<std::int64_t>(bytes), source};
}

/// True if a hash table of winners can serve the owner of a shard, and is faster than a plan.
template <class Exec>
bool winners_beat_a_plan(const Exec& exec, const batch_headers& headers, std::int64_t shard_rows,
                         std::int64_t width) {
  if constexpr (is_host_exec<Exec>) {
    return false;
  } else {
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    const std::int64_t items = headers.in_begin.back();
    return items >= tuning.fewest_claims && items <= tuning.most_claims && width != 0 &&
           kernels::winner_table::fits(items, shard_rows);
  }
}

/// Writes the winning values of all batches to the shard of `rank`. Enqueues only.
template <class Duplicates, class Exec, class T, class Space>
ticket write_winning_values(const char* verb, const Exec& shard_exec, int rank, const batch_headers& headers,
                            const array_ref<T, Space>& shard) {
  using backend = execution_backend<Exec>;
  using path = ferry::path::direct;
  constexpr bool last = !std::is_same_v<Duplicates, duplicates::first>;
  constexpr std::size_t widest = sizeof(kernels::opaque16);
  const offered_values offered = values_for(rank, headers, widest);
  const std::int64_t items = offered.items, rows = shard.rows();
  const bool wide = offered.aligned && in_wide_units(shard);
  const std::size_t unit = wide ? widest : sizeof(unit_of<T>);
  launch_context<Exec> call(shard_exec, verb);
  const std::string& label = call.label(path::name);
  array_ref<const T, device_space> values;
  values.data = reinterpret_cast<const T*>(offered.lowest);
  [[maybe_unused]] const auto traffic =
      count_transfer<path>(call, values, shard, bytes_of_rows(shard, items));
  call.touches(shard);
  auto* const list = call.template scratch<std::int64_t>(items);
  auto* const begins = call.template scratch<std::int64_t>(items);
  auto* const slot_of = call.template scratch<std::uint32_t>(items);
  const auto [table, slots] = winners_for(call, items, rows);
  auto join = lists_for(rank, headers);
  take_values(join, headers, offered.lowest, unit);
  join.rows = list;
  join.begins = begins;
  launch(shard_exec, call.label(path::name, "clear"), slots, kernels::clear_slots{table.slots});
  launch(shard_exec, call.label(path::name, "claim"), items,
         kernels::join_and_claim<backend, last>{join, table, slot_of});
  const kernels::item_strands order(items);
  launch_gather(shard_exec, label, offered_rows<T>{values.data, static_cast<std::int64_t>(unit)}, shard,
                kernels::winning_values{table, slot_of, begins, order}, order.numbers());
  return call.finish(shard, items, true);
}

}  // namespace ferry::detail
