// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/write_choice.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/update_rows.hpp>
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

/// For each place of a plan: the begin of the values of its position, and their factor. One thread for each.
struct place_values {
  const std::int64_t* order;
  const std::int64_t* begins;  ///< null: `rows` is not asked for
  const double* factors;       ///< null: `placed_factors` are not
  std::int64_t* rows;
  double* placed_factors;

  KOKKOS_FUNCTION void operator()(std::int64_t place) const {
    const std::int64_t position = order[place];
    if (begins != nullptr) rows[place] = begins[position];
    if (factors != nullptr) placed_factors[place] = factors[position];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// True if kernels of Exec that update a table in Space read the values of other ranks where they are.
template <class Exec, class Space>
inline constexpr bool reads_other_memory = is_host_exec<Exec> || std::is_same_v<Space, device_space>;

/// The rows that all batches name in the shard of a rank, sorted, with values that kernels read where they
/// are: in the batches, also on other devices. So the link works while the kernel of the verb does.
template <class T>
struct values_in_place {
  tensor<std::int64_t, device_space> rows;  ///< in the order (rank, position)
  tensor<std::int64_t, device_space> begins;
  tensor<double, device_space> factors;  ///< of the values, if the ranks offer some
  row_plan plan;
  /// Rows of `width` elements that begin at multiples of the stride, which is shorter: the plan has the
  /// multiples.
  array_ref<const T, device_space> values;
};

/// The plan with the places of the values of its positions, which `begins` has unless it is null, and with
/// their factors unless they are null. Enqueues only, and finishes the call.
template <class Exec>
row_plan with_values(launch_context<Exec>& call, const row_plan& plan, const std::int64_t* begins,
                     const double* factors) {
  const std::int64_t items = plan.positions();
  const auto home = engine::get(call.exec());
  auto placed = std::allocate_shared<plan_storage>(node_allocator<plan_storage>(), *plan.storage());
  call.use(plan.storage());
  placed->base = plan.storage();
  const int arrays = (begins != nullptr ? 1 : 0) + (factors != nullptr ? 1 : 0);
  placed->memory = call.block(static_cast<std::size_t>(arrays * items) * sizeof(std::int64_t));
  auto* next = static_cast<std::byte*>(placed->memory.get());
  if (begins != nullptr) {
    placed->values.rows = reinterpret_cast<std::int64_t*>(next);
    next += static_cast<std::size_t>(items) * sizeof(std::int64_t);
  }
  if (factors != nullptr) placed->values.factors = reinterpret_cast<double*>(next);
  if (items != 0)
    launch(
        call.exec(), call.label("pull", "places"), items,
        kernels::place_values{placed->order, begins, factors, placed->values.rows, placed->values.factors});
  ticket end = call.finish();
  placed->completion = call.completion();
  placed->made_by = call.id();
  end.drop();
  return row_plan(std::move(placed));
}

/// Sorts the rows of the shard of `rank`, which has `shard_rows`, by kernels of `shard_exec`, if the owner
/// has not done so before, `owned`. Lists that the owner has joined have their places there, too, unless the
/// batches offer other ones. With `weighs` the batches offer factors, too. Enqueues only.
template <class T, class Exec>
values_in_place<T> find_values(const char* verb, const Exec& shard_exec, int rank,
                               const batch_headers& headers, std::int64_t shard_rows, std::int64_t width,
                               const owned_batch* owned = nullptr, bool weighs = false) {
  constexpr std::size_t packet = 4 * sizeof(T);  // one load of a kernel, if all values are aligned to it
  const offered_values offered = values_for(rank, headers, packet);
  const std::int64_t items = offered.items;
  values_in_place<T> in_place{
      payload<std::int64_t, device_space>(shard_exec, "rows of all ranks", owned == nullptr ? items : 0),
      payload<std::int64_t, device_space>(shard_exec, "begins of values", items),
      payload<double, device_space>(shard_exec, "factors of values", weighs ? items : 0),
      {},
      {}};
  in_place.values.rank = 2;
  in_place.values.extents = {items, width};
  in_place.values.make_dense();
  in_place.values.data = reinterpret_cast<const T*>(offered.lowest);
  in_place.values.strides[0] = offered.aligned ? 4 : 1;
  const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
  launch_context<Exec> call(shard_exec, verb);
  if (items != 0) {
    auto join =
        has_places(owned) ? joined_lists_for(rank, headers, owned->place.data()) : lists_for(rank, headers);
    take_values(join, headers, offered.lowest, offered.aligned ? packet : sizeof(T));
    join.rows = owned == nullptr ? in_place.rows.data() : nullptr;
    join.begins = in_place.begins.data();
    join.factors = weighs ? in_place.factors.data() : nullptr;
    launch(shard_exec, call.label("pull", "lists"), items, join);
  }
  const row_plan plan =
      owned == nullptr ? make_plan(shard_exec, in_place.rows, shard_rows, bounds::unchecked{}) : owned->plan;
  in_place.plan = with_values(call, plan, in_place.begins.data(), weighs ? in_place.factors.data() : nullptr);
  return in_place;
}

/// Does the job of a verb on the rows of a shard, with such values.
template <verb What, class Choice, class Exec, class Shard, class Job, class T>
void write_in_place(const Exec& exec, const Shard& shard, const Job& job, const values_in_place<T>& sources) {
  using duplicates = typename Choice::duplicates;
  using chosen = chosen_policies<shard_policies<typename Choice::chosen, duplicates>>;
  update_rows<What, chosen, shard_duplicates_t<duplicates>>(exec, plain_rows(shard), job, sources.plan,
                                                            sources.values)
      .join();
}

/// How such values belong to the plan: they have been checked with the batches.
struct values_of_ranks {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto&, const Named&, const auto&) {}
};

}  // namespace ferry::detail
