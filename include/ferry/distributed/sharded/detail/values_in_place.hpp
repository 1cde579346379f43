// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
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

/// Sorts the rows of the shard of `rank`, which has `shard_rows`, by kernels of `there`. Enqueues only.
template <class T, class Exec>
values_in_place<T> find_values(const char* verb, const Exec& there, int rank, const batch_headers& headers,
                               std::int64_t shard_rows, std::int64_t width) {
  constexpr std::size_t packet = 4 * sizeof(T);  // one load of a kernel, if all values are aligned to it
  const offered_values offered = values_for(rank, headers, packet);
  const std::int64_t items = offered.items;
  values_in_place<T> found{payload<std::int64_t, device_space>(there, "rows of all ranks", items),
                           payload<std::int64_t, device_space>(there, "places of values", items),
                           {},
                           {}};
  found.values.rank = 2;
  found.values.extents = {items, width};
  found.values.make_dense();
  found.values.data = reinterpret_cast<const T*>(offered.lowest);
  found.values.strides[0] = offered.aligned ? 4 : 1;
  const waited_when_thrown<Exec> reads(there);  // memory of other ranks
  launch_context<Exec> call(there, verb);
  if (items != 0) {
    auto join = lists_for(rank, headers, offered.lowest, offered.aligned ? packet : sizeof(T));
    join.rows = found.rows.data();
    join.from = found.from.data();
    launch(there, call.label("pull", "lists"), items, join);
  }
  found.plan = make_plan(there, found.rows, shard_rows, bounds::unchecked{});
  const auto home = engine::get(there);
  auto placed =
      std::allocate_shared<plan_storage>(node_allocator<plan_storage>(home->nodes()), *found.plan.storage());
  call.use(found.plan.storage());
  placed->base = found.plan.storage();
  placed->memory = call.block(static_cast<std::size_t>(items) * sizeof(std::int64_t));
  placed->values.rows = static_cast<std::int64_t*>(placed->memory.get());
  if (items != 0)
    launch(there, call.label("pull", "places"), items,
           kernels::place_values{placed->order, found.from.data(), placed->values.rows});
  ticket end = call.finish();
  placed->made = call.done();
  placed->made_by = call.id();
  end.drop();
  found.plan = row_plan(std::move(placed));
  return found;
}

/// How such values belong to the plan: they have been checked with the batches.
struct values_of_ranks {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto&, const Named&, const auto&) {}
};

}  // namespace ferry::detail
