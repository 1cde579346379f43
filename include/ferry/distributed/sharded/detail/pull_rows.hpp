// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// The last of `count` ranks whose items do not begin behind item i.
KOKKOS_FORCEINLINE_FUNCTION int group_of_item(const std::int64_t* begin, int count, std::int64_t i) {
  int rank = 0;
  for (int last = count - 1; rank < last;) {
    const int middle = (rank + last + 1) / 2;
    if (begin[middle] <= i)
      rank = middle;
    else
      last = middle - 1;
  }
  return rank;
}

/// Item i is the position of all ranks' batches that comes i-th for one owner, in the order (rank, position).
/// Writes its row in the owner's shard, where its values begin, in units after the lowest of all values, and
/// its factor: each if its list is not null. One thread for each item: neighbours read neighbouring elements
/// of the lists of one rank.
struct join_lists {
  const std::int64_t* place[most_shards];  ///< of each rank, from its first item on; null: 0, 1, 2 ...
  const std::int64_t* local[most_shards];
  const double* factor[most_shards];
  std::int64_t values[most_shards];  ///< begin of the rank's values
  std::int64_t step[most_shards];    ///< units from a row of its values to the next
  std::int64_t begin[most_shards];   ///< its first item
  std::int64_t* rows;
  std::int64_t* begins;
  double* factors;
  int ranks;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { (void)join(i); }
  /// Returns the row of the item in the owner's shard; 0 without `rows`.
  KOKKOS_FUNCTION std::int64_t join(std::int64_t i) const {
    const int rank = group_of_item(begin, ranks, i);
    const std::int64_t k = i - begin[rank];
    const std::int64_t row = rows != nullptr ? local[rank][k] : 0;
    if (rows != nullptr) rows[i] = row;
    if (factors != nullptr) factors[i] = factor[rank][k];
    if (begins != nullptr)
      begins[i] = values[rank] + (place[rank] == nullptr ? k : place[rank][k]) * step[rank];
    return row;
  }
};

/// out[u] = the unit of column u % width that begins from[u / width] units after `lowest`: rows of a dense
/// buffer, in units of type Unit, or of 16 bytes if `wide`.
///
/// Device mapping: few threads, each with four loads in flight, walk over the units, neighbours over
/// neighbouring ones. That fills the links to the other devices and leaves most of each multiprocessor to
/// another kernel.
template <class Unit>
struct pull_units {
  /// As many threads as 66 blocks of 512: these fill NVLink (H200).
  static constexpr std::int64_t most_iterations = 66 * 512;
  static constexpr int at_once = 4;

  const void* lowest;
  void* out;
  const std::int64_t* begins;
  detail::fast_divisor width;
  std::int64_t count;
  std::int64_t iterations;
  bool wide;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (wide)
      move<opaque16>(i);
    else
      move<Unit>(i);
  }

 private:
  template <class Any>
  KOKKOS_FORCEINLINE_FUNCTION void move(std::int64_t i) const {
    for (std::int64_t first = i; first < count; first += at_once * iterations) {
      Any unit[at_once];
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t u = first + k * iterations;
        if (u >= count) continue;
        const std::int64_t item = width.quotient(u);
        unit[k] = static_cast<const Any*>(lowest)[begins[item] + (u - item * width.divisor())];
      }
      for (int k = 0; k < at_once; ++k)
        if (const std::int64_t u = first + k * iterations; u < count) static_cast<Any*>(out)[u] = unit[k];
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The offer of a rank whose batch route_by_kernels has routed, without values. `shard_exec` works on the
/// shard of the rank.
template <class Exec>
batch_offer offer_lists(const Exec& exec, const Exec& shard_exec, const routed_lists& lists) {
  using backend = execution_backend<Exec>;
  batch_offer offer;
  if (lists.memory == nullptr) return offer;
  offer.place = lists.place;
  offer.rows = lists.rows;
  offer.lists_device = backend::device_of(exec);
  offer.owner_device = backend::device_of(shard_exec);
  offer.is_made = 1;
  return offer;
}
/// As above, with the values of the batch.
template <class Exec, class Value, class Space>
batch_offer offer_batch(const Exec& exec, const Exec& shard_exec, const routed_lists& lists,
                        const array_ref<Value, Space>& values) {
  if (std::is_same_v<Space, pageable_space> && !is_host_exec<Exec>) return {};
  batch_offer offer = offer_lists(exec, shard_exec, lists);
  offer.values = reinterpret_cast<const std::byte*>(values.data);
  offer.value_step = values.row_stride() * static_cast<std::int64_t>(sizeof(Value));
  if constexpr (!Space::is_host_accessible) offer.values_device = execution_backend<Exec>::device_of(exec);
  return offer;
}

/// The values of all batches for one owner.
struct offered_values {
  std::int64_t items = 0;
  const std::byte* lowest = nullptr;  ///< the lowest address of a batch's values
  bool aligned = true;                ///< true if all rows begin at multiples of `unit` bytes
  bool on_devices = true;             ///< true if all lie in memory of devices
};
[[nodiscard]] offered_values values_for(int owner, const batch_headers& headers, std::size_t unit);

/// The lists of all ranks for an owner. A row of values counts as one unit.
[[nodiscard]] kernels::join_lists lists_for(int owner, const batch_headers& headers);
/// As above, of an owner that has joined them: `place` has those of all ranks, one after the other.
[[nodiscard]] kernels::join_lists joined_lists_for(int owner, const batch_headers& headers,
                                                   const std::int64_t* place);
/// Lets the lists find the values of the batches, in units of `unit` bytes after `lowest`.
void take_values(kernels::join_lists& join, const batch_headers& headers, const std::byte* lowest,
                 std::size_t unit);

/// The rows that all batches name in the shard of a rank, in the order (rank, position), on the device of the
/// shard's instance.
struct owned_batch {
  tensor<std::int64_t, device_space> rows{};
  tensor<std::int64_t, device_space> place{};  ///< the row of each one's values in the batch of its rank
  row_plan plan{};                             ///< of the rows
};

/// True if the owner has joined the places, too.
inline bool has_places(const owned_batch* owned) { return owned != nullptr && owned->place.size() != 0; }

/// Joins the lists that all ranks have for the shard of `rank`, and sorts their rows. The lists of other
/// ranks have been read when this returns; the sort is enqueued.
template <class Exec>
owned_batch join_batches(const char* verb, const Exec& shard_exec, int rank, const batch_headers& headers,
                         std::int64_t shard_rows) {
  const std::int64_t items = headers.in_begin.back();
  owned_batch owned{payload<std::int64_t, device_space>(shard_exec, "rows of all ranks", items),
                    payload<std::int64_t, device_space>(shard_exec, "places of values", items),
                    {}};
  if (items != 0) {
    const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
    launch_context<Exec> call(shard_exec, verb);
    auto join = lists_for(rank, headers);
    join.rows = owned.rows.data();
    join.begins = owned.place.data();
    const std::string& label = call.label("pull", "lists");
    launch(shard_exec, label, items, join);
    execution_backend<Exec>::fence(shard_exec, label);
    call.finish().drop();
  }
  owned.plan = make_plan(shard_exec, owned.rows, shard_rows, bounds::unchecked{});
  return owned;
}

/// The rows that all batches name in the shard of this rank, with their values, in the order (rank,
/// position): on the device of the shard's instance.
template <class T>
struct pulled_rows {
  tensor<std::int64_t, device_space> rows;
  tensor<T, device_space> values;
  row_plan plan;                           ///< of the rows, if asked for
  tensor<double, device_space> factors{};  ///< of the values, if asked for
};

/// Pulls the rows of the shard of `rank` out of the batches of all ranks, by kernels of `shard_exec`: the
/// lists first, which are short and lie in order, then the values that they name. With `Sorts` also sorts the
/// rows, of a shard that has `shard_rows`, while a device pulls the values. If the owner has joined the lists
/// before, `owned`, pulls the values alone. With `weighs` also pulls the factors of the batches. Enqueues
/// only.
template <class T, bool Sorts = false, class Exec>
pulled_rows<T> pull_rows(const char* verb, const Exec& shard_exec, int rank, const batch_headers& headers,
                         std::int64_t width, [[maybe_unused]] std::int64_t shard_rows = 0,
                         const owned_batch* owned = nullptr, bool weighs = false) {
  using backend = execution_backend<Exec>;
  using kernel = kernels::pull_units<unit_of<T>>;
  constexpr std::size_t widest = sizeof(kernels::opaque16);
  const offered_values offered = values_for(rank, headers, widest);
  const std::int64_t items = offered.items;
  pulled_rows<T> pulled{
      payload<std::int64_t, device_space>(shard_exec, "rows of all ranks", owned == nullptr ? items : 0),
      payload<T, device_space>(shard_exec, "values of all ranks", items, width),
      {}};
  if (owned != nullptr) pulled.plan = owned->plan;
  if (weighs) pulled.factors = payload<double, device_space>(shard_exec, "factors of all ranks", items);
  if (items == 0) {
    if constexpr (Sorts)
      if (owned == nullptr) pulled.plan = make_plan(shard_exec, pulled.rows, shard_rows, bounds::unchecked{});
    return pulled;
  }
  const auto sink = make_ref(pulled.values);
  const bool wide = in_wide_units(sink) && offered.aligned;
  launch_context<Exec> call(shard_exec, verb);
  auto* const begin = call.template scratch<std::int64_t>(items);
  auto join =
      has_places(owned) ? joined_lists_for(rank, headers, owned->place.data()) : lists_for(rank, headers);
  take_values(join, headers, offered.lowest, wide ? widest : sizeof(unit_of<T>));
  join.rows = owned == nullptr ? pulled.rows.data() : nullptr;
  join.begins = begin;
  join.factors = weighs ? pulled.factors.data() : nullptr;
  launch(shard_exec, call.label("pull", "lists"), items, join);
  const auto units = in_units(sink, wide);
  const std::int64_t count = items * units.width;
  // A host's threads walk over neighbouring units.
  const std::int64_t threads = is_host_exec<Exec> ? count : std::min(count, kernel::most_iterations);
  const kernel pull{offered.lowest, units.data, begin, fast_divisor(units.width), count, threads, wide};
  if constexpr (Sorts && !is_host_exec<Exec>) {
    // The sort is enqueued first, because the pull leaves room on each multiprocessor.
    const Exec& side = call.side_stream();
    const fence_on_exception<Exec> reads(side);  // memory of other ranks
    if (const event_handle joined = call.mark(); joined != nullptr) backend::wait_for(side, *joined);
    if (owned == nullptr) pulled.plan = make_plan(shard_exec, pulled.rows, shard_rows, bounds::unchecked{});
    launch(side, call.label("pull"), threads, pull);
    if (const event_handle end = call.mark(side); end != nullptr) backend::wait_for(shard_exec, *end);
  } else {
    launch(shard_exec, call.label("pull"), threads, pull);
    if constexpr (Sorts)
      if (owned == nullptr) pulled.plan = make_plan(shard_exec, pulled.rows, shard_rows, bounds::unchecked{});
  }
  call.finish().drop();
  return pulled;
}

}  // namespace ferry::detail
