// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ferry::kernels {

/// rows[place] = where the values of the place's position begin.
struct place_values {
  const std::int64_t* order;
  const std::int64_t* from;
  std::int64_t* rows;

  KOKKOS_FUNCTION void operator()(std::int64_t place) const { rows[place] = from[order[place]]; }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows that all batches name in the shard of a rank, sorted, with values that kernels read where they
/// are: in the batches, also on other devices. So the link works while the kernel of the verb does.
template <class T>
struct values_in_place {
  tensor<std::int64_t, device_space> rows;  ///< in the order (rank, position)
  tensor<std::int64_t, device_space> from;
  row_plan plan;
  /// Rows of `width` elements that begin at multiples of the stride, which is shorter: the plan has the
  /// multiples.
  array_ref<const T, device_space> values;
};

/// Whether the values for the shard of `rank` all lie in memory of devices: those in host memory are pulled
/// first, by few threads.
[[nodiscard]] bool lie_on_devices(int rank, const batch_meeting<batch_offer>& met);

/// Sorts the rows of the shard of `rank`, which has `shard_rows`, by kernels of `there`. Enqueues only.
template <class T, class Exec>
values_in_place<T> find_values(const char* verb, const Exec& there, int rank,
                               const batch_meeting<batch_offer>& met, std::int64_t shard_rows,
                               std::int64_t width) {
  const auto ranks = met.offers.size();
  constexpr std::size_t packet = 4 * sizeof(T);  // what kernels load at once where they can
  std::int64_t items = 0;
  const std::byte* lowest = nullptr;
  bool packed = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::int64_t count = met.counts[r * ranks + static_cast<std::size_t>(rank)];
    if (count == 0) continue;
    items += count;
    const batch_offer& each = met.offers[r];
    if (lowest == nullptr || each.values < lowest) lowest = each.values;
    packed = packed && reinterpret_cast<std::uintptr_t>(each.values) % packet == 0 &&
             each.value_step % static_cast<std::int64_t>(packet) == 0;
  }
  values_in_place<T> made{payload<std::int64_t, device_space>(there, "rows of all ranks", items),
                          payload<std::int64_t, device_space>(there, "places of values", items),
                          {},
                          {}};
  made.values.rank = 2;
  made.values.extents = {items, width};
  made.values.make_dense();
  made.values.data = reinterpret_cast<const T*>(lowest);
  made.values.strides[0] = packed ? 4 : 1;
  const waited_when_thrown<Exec> reads(there);  // memory of other ranks
  launch_context<Exec> of(there, verb);
  if (items != 0) {
    auto join = lists_for(rank, met.offers, met.counts, lowest, packed ? packet : sizeof(T));
    join.rows = made.rows.data();
    join.from = made.from.data();
    launch(there, of.label("pull", "lists"), items, join);
  }
  made.plan = make_plan(there, made.rows, shard_rows, bounds::unchecked{});
  const auto home = engine::get(there);
  auto named =
      std::allocate_shared<plan_storage>(node_allocator<plan_storage>(home->nodes()), *made.plan.storage());
  of.use(made.plan.storage());
  named->base = made.plan.storage();
  named->memory = of.block(static_cast<std::size_t>(items) * sizeof(std::int64_t));
  named->values.rows = static_cast<std::int64_t*>(named->memory.get());
  if (items != 0)
    launch(there, of.label("pull", "places"), items,
           kernels::place_values{named->order, made.from.data(), named->values.rows});
  ticket ended = of.finish();
  named->made = of.done();
  named->made_by = of.id();
  ended.drop();
  made.plan = row_plan(std::move(named));
  return made;
}

/// How such values belong to the plan: they have been checked with the batches.
struct values_of_ranks {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto&, const Named&, const auto&) {}
};

template <class T>
inline constexpr bool are_in_place = false;
template <class T>
inline constexpr bool are_in_place<values_in_place<T>> = true;

/// A verb on a shard by Path that also takes values_in_place, as its plan and the values, where the kernels
/// of the path read the values themselves.
template <class Path, class Apply>
struct verb_on_shards : Apply {
  static constexpr bool reads_in_place = std::is_same_v<Path, path::automatic> || in_batch_order<Path>;
};
template <class Apply>
inline constexpr bool reads_in_place = requires {
  requires Apply::reads_in_place;
};

}  // namespace ferry::detail
