// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/winning_values.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/write_winners.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// A scatter of ranks whose values do not travel before it is known which of them win: owners tell the ranks
/// of the batches, whose kernels write the values to the shards over the links.
namespace ferry::kernels {

/// Tells the ranks which of their items have won. One thread for each item.
struct tell_winners {
  winner_table table;
  const std::uint32_t* slot_of;
  std::int64_t begin[most_shards];
  std::uint8_t* wins[most_shards];
  int ranks;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int rank = group_of_item(begin, ranks, i);
    wins[rank][i - begin[rank]] = table.winner(slot_of[i]) == i ? 1 : 0;
  }
};

/// Number k is an item of a batch, which goes to the shard of its owner if it has won its row.
struct pushed_values {
  const std::uint8_t* wins;
  const std::int64_t* place;
  const std::int64_t* rows;
  item_strands order;
  int owners;
  std::int64_t stride;               ///< units from a row of a shard to the next
  std::int64_t first[most_shards];   ///< item of each owner
  std::int64_t shards[most_shards];  ///< units from the lowest shard to each

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const {
    const std::int64_t item = order(k);
    return item < order.items && wins[item] != 0 ? place[item] : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const {
    const std::int64_t item = order(k);
    return shards[group_of_item(first, owners, item)] + rows[item] * stride;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Ranks push if one of them has at least this many positions: one number for all devices, as ranks whose
/// devices differ decide alike. Pushing takes a meeting more, and saves the packing of values. Two processes
/// with an H200 each, rows of 512 bytes, ms: 1024 positions a rank take 0.33 by pushing and 0.26 by pulling,
/// 131072 take 0.33 and 0.37. A line through both differences has its zero at 84 thousand.
inline constexpr std::int64_t fewest_pushed = std::int64_t{1} << 16;

/// True if all ranks push: all have offered to, a rank has enough positions, and a table of winners serves
/// each owner, whose shard has at most `rows`. The same on all ranks.
[[nodiscard]] bool can_push(const batch_headers& headers, std::int64_t rows);
/// True if owners could pull, but a rank has offered to push and left the values out of its lane. The same on
/// all ranks.
[[nodiscard]] bool lacks_values(const batch_headers& headers);

/// The owner's part: its call, which writes to the shard from the claims to finish(), so that other work on
/// the shard is before or after what all ranks write there.
template <class Exec>
class claimed_shard {
 public:
  /// Enqueues the kernels that tell the ranks which of their items win.
  template <class Duplicates, class T, class Space>
  claimed_shard(std::type_identity<Duplicates>, const char* verb, const Exec& exec, int rank,
                const batch_headers& headers, const array_ref<T, Space>& shard)
      : call_(exec, verb), items_(headers.in_begin.back()) {
    using backend = execution_backend<Exec>;
    constexpr bool last = !std::is_same_v<Duplicates, duplicates::first>;
    const std::int64_t rows = shard.rows();
    call_.touches(shard);
    auto* const list = call_.template scratch<std::int64_t>(items_);
    auto* const slot_of = call_.template scratch<std::uint32_t>(items_);
    if (items_ == 0) return;
    const auto table = winners_for(call_, items_, rows);
    auto join = lists_for(rank, headers);
    join.rows = list;
    launch(exec, call_.label(path::direct::name, "clear"), table.second,
           kernels::clear_slots{table.first.slots});
    launch(exec, call_.label(path::direct::name, "claim"), items_,
           kernels::join_and_claim<backend, last>{join, table.first, slot_of});
    kernels::tell_winners notice{table.first, slot_of, {}, {}, join.ranks};
    for (std::size_t r = 0; r < headers.offers.size(); ++r) {
      notice.begin[r] = join.begin[r];
      std::int64_t before = 0;
      for (int lower = 0; lower < rank; ++lower) before += headers.count(r, lower);
      notice.wins[r] = headers.offers[r].wins + before;
    }
    launch(exec, call_.label(path::direct::name, "tell"), items_, notice);
  }
  /// After the writes of all ranks.
  void finish() { call_.finish().join(); }

 private:
  launch_context<Exec> call_;
  std::int64_t items_;
};

/// True if values of the rows of a table can be pushed: they are written in units, to places that are whole
/// units apart.
template <class T, class Space>
bool pushes_units(const array_ref<T, Space>& values) {
  return values.width() != 0 &&
         (sizeof(unit_of<std::remove_const_t<T>>) == sizeof(T) || in_wide_units(values));
}

/// The rank's part: writes its values that have won to the shards of all ranks. Enqueues only.
template <class Exec, class T, class Space, class Spread, class Value>
ticket push_values(const char* verb, const Exec& exec, const sharded_table<T, Space, Spread>& table,
                   const routed_lists& lists, const route_groups& route, const std::uint8_t* wins,
                   const array_ref<Value, device_space>& values) {
  const bool wide = in_wide_units(values) && sizeof(kernels::opaque16) % sizeof(T) == 0;
  const std::size_t unit = wide ? sizeof(kernels::opaque16) : sizeof(T);
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label(path::direct::name);
  const int ranks = table.comm().size();
  const std::int64_t items = route.routed();
  kernels::pushed_values source{wins,       lists.place,
                                lists.rows, kernels::item_strands(items),
                                ranks,      static_cast<std::int64_t>(table.width() * sizeof(T) / unit),
                                {},         {}};
  std::uintptr_t lowest = ~std::uintptr_t{0};
  std::uintptr_t shards[kernels::most_shards] = {};
  for (int r = 0; r < ranks; ++r) {
    shards[r] = reinterpret_cast<std::uintptr_t>(
        table.holds(r) ? static_cast<const void*>(table.shard(r).data())
                       : static_cast<const void*>(table.opened().data[static_cast<std::size_t>(r)].get()));
    if (shards[r] != 0) lowest = std::min(lowest, shards[r]);
  }
  for (int r = 0; r < ranks; ++r) {
    source.first[r] = route.group(r).first;
    source.shards[r] = static_cast<std::int64_t>((shards[r] - lowest) / unit);
  }
  array_ref<T, device_space> target;
  target.data = reinterpret_cast<T*>(lowest);
  target.rank = 2;
  target.extents = {static_cast<std::int64_t>(table.rows()), static_cast<std::int64_t>(table.width())};
  target.strides = {static_cast<std::int64_t>(unit / sizeof(T)), 1};
  call.reads_from(values);
  if (items != 0) launch_gather(exec, label, values, target, source, source.order.numbers());
  return call.finish();
}

}  // namespace ferry::detail
