// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The positions of a batch in buckets, one for each owner of their rows. Kernels of the rank's instance make
/// them; the host learns the number of positions of each bucket and the bad indices.
namespace ferry::kernels {

/// list[i] = -1.
struct clear_slots_of_rows {
  std::int64_t* list;
  static std::int64_t bytes_each() { return sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { list[i] = -1; }
};

/// slots[place[k]] = k.
struct place_items {
  const std::int64_t* place;
  std::int64_t* slots;
  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { slots[place[k]] = k; }
};

/// slots[p] = the slot of the different row of position p.
struct slots_of_positions {
  const std::int64_t* inverse;
  const std::int64_t* slots_of_rows;
  std::int64_t* slots;
  static std::int64_t bytes_each() { return 3 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    slots[p] = inverse[p] < 0 ? -1 : slots_of_rows[inverse[p]];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Items of a list in groups, one for each rank.
struct item_groups {
  std::vector<std::int64_t> begin{0};  ///< [ranks + 1] begin of each group
  bool everywhere = false;             ///< there is one group, for all ranks

  [[nodiscard]] std::int64_t items() const { return begin.back(); }
  /// The group of a rank, as [first, last).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> group(int rank) const {
    if (everywhere) return {0, items()};
    return {begin[static_cast<std::size_t>(rank)], begin[static_cast<std::size_t>(rank) + 1]};
  }
};

/// The positions of one batch in the order (owner, position), and their rows in the shards of their owners,
/// where kernels of the batch's instance reach them. Positions without a row are left out.
struct buckets : item_groups {
  std::int64_t positions = 0;
  bool signed_indices = true;
  index_report report;           ///< bad indices, under bounds::check
  std::shared_ptr<void> memory;  ///< of the lists
  const std::int64_t* place = nullptr;
  const std::int64_t* rows = nullptr;
};

/// A list near the instances of a type, as an array.
template <class Exec>
array_ref<const std::int64_t, near_space<Exec>> list_view(const std::int64_t* list, std::int64_t count) {
  auto view = dense_rows<const std::int64_t, near_space<Exec>>(list, count, 1, "rows");
  view.rank = 1;
  return view;
}
template <class Exec, class Tensor>
array_ref<const std::int64_t, near_space<Exec>> list_view(const Tensor& list) {
  return list_view<Exec>(list.data(), static_cast<std::int64_t>(list.rows()));
}

/// Enqueues the kernels. `ends` and the lists are valid after them.
template <class Exec, class Source, class Spread>
void launch_route(launch_context<Exec>& call, kernels::owned_positions<Source, Spread> positions,
                  std::int64_t* place, std::int64_t* rows, std::int64_t* ends) {
  using backend = execution_backend<Exec>;
  // Short chunks for many threads; with many owners longer ones, so that the counts are no more than the
  // positions.
  positions.length = std::max<std::int64_t>(16, positions.ranks);
  positions.is_packed = positions.ranks <= kernels::packed_counts::most_owners &&
                        positions.length <= kernels::packed_counts::most;
  positions.chunks = (positions.positions + positions.length - 1) / positions.length;
  const std::int64_t cells = positions.chunks * positions.ranks;
  auto* const counts = call.template scratch<std::uint32_t>(cells);
  auto* const sums = call.template scratch<std::uint64_t>(cells);
  const std::size_t bytes = backend::template sum_bytes<const std::uint32_t*>(cells);
  auto* const workspace = call.template scratch<std::byte>(static_cast<std::int64_t>(bytes));
  launch(call.exec(), call.label("route", "count"), positions.chunks,
         kernels::count_owned<Source, Spread>{positions, counts});
  backend::inclusive_sum(call.exec(), static_cast<const std::uint32_t*>(counts), sums, cells, workspace,
                         bytes);
  launch(call.exec(), call.label("route", "place"), positions.chunks,
         kernels::place_owned<Source, Spread>{positions, counts, sums, place, rows, ends});
}

/// The indices where kernels of the instance reach them; `room` keeps a copy of those on another device.
template <class Exec, class Index, class Space>
array_ref<Index, Space> indices_near(const Exec& exec, const array_ref<Index, Space>& indices,
                                     std::shared_ptr<void>& room) {
  using plain = std::remove_const_t<Index>;
  if constexpr (!Space::is_host_accessible)
    if (lies_elsewhere(exec, indices)) {
      std::vector<plain> passing(static_cast<std::size_t>(indices.rows()));
      copy(exec, indices, passing).join();
      auto list = std::make_shared<tensor<plain, Space>>("indices", memory_home(exec), passing.size());
      copy(exec, passing, *list).join();
      room = list;
      auto local_list = make_ref(*list);
      array_ref<Index, Space> result = indices;
      result.data = local_list.data;
      result.accesses = local_list.accesses;
      return result;
    }
  return indices;
}

/// The buckets of a batch. `named` comes from rows_named_by. Waits once for the instance: what it writes to
/// the lists has ended then, as has the work that makes `values`, the rows of the batch, if there are any.
template <class Bounds, class Exec, class Table, class Named, class... Values>
buckets bucket_rows(const char* verb, const Exec& exec, const Table& table, const Named& named,
                    const Values&... values) {
  using backend = execution_backend<Exec>;
  buckets items;
  items.everywhere = Table::sharding_type::replicates;
  const int ranks = items.everywhere ? 1 : table.comm().size();
  const auto rows = static_cast<std::int64_t>(table.rows());
  items.positions = positions_of(named);
  const std::int64_t count = items.positions;
  items.begin.assign(static_cast<std::size_t>(ranks) + 1, 0);
  const auto sharding = sharding_for_kernels(exec, table);
  launch_context<Exec> call(exec, verb);
  (call.reads_from(values, true), ...);
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(count, 1));
  items.memory = engine::get(exec)->device_scratch(2 * room * sizeof(std::int64_t));
  auto* const place = static_cast<std::int64_t*>(items.memory.get());
  items.place = place;
  items.rows = place + room;
  auto* const ends = call.template pinned<std::int64_t>(ranks);
  std::fill_n(ends, ranks, std::int64_t{0});
  const auto route_from = [&](const auto& source) {
    using from = std::remove_cvref_t<decltype(source)>;
    using spread = std::remove_const_t<decltype(sharding)>;
    if (count > 0)
      launch_route(call,
                   kernels::owned_positions<from, spread>{source, sharding, rows, count, 1, count, ranks},
                   place, place + room, ends);
  };
  static const std::string label = "ferry::distributed::routed";
  if constexpr (is_plan<Named>) {
    call.use(named.storage());
    route_from(kernels::listed_rows{named.storage()->row_of});
    backend::fence(exec, label);
    if (named.storage()->checked) items.report = named.storage()->read_report();
    items.signed_indices = named.storage()->signed_indices;
  } else {
    using index = std::remove_const_t<typename Named::value_type>;
    std::shared_ptr<void> passing;
    const auto local_list = indices_near(exec, named, passing);
    const report_writer report = Bounds::reports ? call.report() : report_writer{};
    route_from(kernels::index_rows<index, Bounds>{indices_for_kernels(call, local_list), rows, report});
    backend::fence(exec, label);
    if constexpr (Bounds::reports) items.report = read_report<Exec>(report);
    items.signed_indices = std::is_signed_v<index>;
  }
  std::copy_n(ends, ranks, items.begin.begin() + 1);
  call.finish().drop();
  return items;
}

/// The buckets of the different rows of a plan: the place of an item is the number of its row in
/// unique_rows().
template <class Exec, class Table, class... Values>
buckets bucket_different_rows(const char* verb, const Exec& exec, const Table& table, const row_plan& plan,
                              const Values&... values) {
  const auto different = plan.unique_rows<near_space<Exec>>();
  buckets items = bucket_rows<bounds::unchecked>(verb, exec, table, index_ref(different), values...);
  items.positions = plan.positions();
  if (plan.storage() == nullptr) return items;
  items.signed_indices = plan.storage()->signed_indices;
  if (plan.storage()->checked) items.report = plan.storage()->read_report();
  return items;
}

/// For each position the number of its item, -1 for none. `plan`: items are its different rows. Enqueues
/// only.
template <class Exec>
tensor<std::int64_t, near_space<Exec>> slots_of(const char* verb, const Exec& exec, const buckets& items,
                                                const row_plan* plan = nullptr) {
  const std::int64_t rows = plan == nullptr ? items.positions : plan->unique_count();
  auto slots = payload<std::int64_t, near_space<Exec>>(exec, "slots of positions", items.positions);
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label("slots");
  auto* const slots_of_rows = plan == nullptr ? slots.data() : call.template scratch<std::int64_t>(rows);
  if (rows > 0) launch(exec, label, rows, kernels::clear_slots_of_rows{slots_of_rows});
  if (items.items() > 0) launch(exec, label, items.items(), kernels::place_items{items.place, slots_of_rows});
  if (plan != nullptr && items.positions > 0) {
    call.use(plan->storage());
    launch(exec, label, items.positions,
           kernels::slots_of_positions{plan->storage()->inverse, slots_of_rows, slots.data()});
  }
  call.finish().drop();
  return slots;
}

}  // namespace ferry::detail
