// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int rank = group_of_item(begin, ranks, i);
    const std::int64_t k = i - begin[rank];
    if (rows != nullptr) rows[i] = local[rank][k];
    if (factors != nullptr) factors[i] = factor[rank][k];
    if (begins != nullptr)
      begins[i] = values[rank] + (place[rank] == nullptr ? k : place[rank][k]) * step[rank];
  }
};

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

/// numbers[i] += shift[r] for the items i of group r.
struct shift_numbers {
  std::int64_t* numbers;
  const std::int64_t* begin;
  const std::int64_t* shift;
  int groups;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    numbers[i] += shift[group_of_item(begin, groups, i)];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The values of all batches for this owner.
struct offered_values {
  std::int64_t items = 0;
  const std::byte* lowest = nullptr;  ///< the lowest address of a batch's values
  bool aligned = true;                ///< true if all rows begin at multiples of `unit` bytes
};
[[nodiscard]] offered_values values_for(const batch_headers& headers, std::size_t unit);

/// The lists of all ranks for this one. A row of values counts as one unit. An owner that has joined the
/// lists gives `joined_place`, those of all ranks, one after the other.
[[nodiscard]] kernels::join_lists lists_for(const batch_headers& headers,
                                            const std::int64_t* joined_place = nullptr);

/// Lets the lists find the values of the batches, in units of `unit` bytes after `lowest`.
void take_values(kernels::join_lists& join, const batch_headers& headers, const std::byte* lowest,
                 std::size_t unit);

/// The rows that all batches name in the shard of a rank, in the order (rank, position), on the device of the
/// shard's instance.
template <class Exec>
struct owned_rows {
  tensor<std::int64_t, near_space<Exec>> rows{};
  tensor<std::int64_t, near_space<Exec>>
      place{};      ///< of each one's values in its batch; empty if these come packed
  row_plan plan{};  ///< of the rows
};

/// Joins the lists that all ranks have for the shard of this one, and sorts their rows. The lists of other
/// ranks have been read when this returns; the sort is enqueued.
template <class Exec>
owned_rows<Exec> join_rows(const char* verb, const Exec& shard_exec, const batch_headers& headers,
                           std::int64_t shard_rows) {
  using local_list = near_space<Exec>;
  const std::int64_t items = headers.in_begin.back();
  owned_rows<Exec> owned{payload<std::int64_t, local_list>(shard_exec, "rows of all ranks", items),
                         payload<std::int64_t, local_list>(shard_exec, "places of values", items),
                         {}};
  if (items != 0) {
    const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
    launch_context<Exec> call(shard_exec, verb);
    auto join = lists_for(headers);
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

/// Counts the rows of the shard of a rank that a plan of them names more than once. Waits.
template <class Exec, class Table>
void count_duplicates(const Exec& shard_exec, const Table& table, int rank, const row_plan& plan,
                      batch_findings& findings) {
  if (plan.unique_count() == plan.positions()) return;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(plan.unique_count())), begin(rows.size() + 1);
  copy(shard_exec, plan.unique_rows<near_space<Exec>>(), rows).join();
  copy(shard_exec, plan.segments<near_space<Exec>>(), begin).join();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (begin[i + 1] - begin[i] < 2) continue;
    ++findings.duplicates;
    findings.first_row =
        std::min(findings.first_row, static_cast<std::uint64_t>(table.global_row(rank, rows[i])));
  }
}

/// The plan with the places of the values of its positions, which `begins` has unless it is null, and with
/// their factors unless they are null. Enqueues only, and finishes the call.
template <class Exec>
row_plan with_values(launch_context<Exec>& call, const row_plan& plan, const std::int64_t* begins,
                     const double* factors) {
  const std::int64_t items = plan.positions();
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

/// The rows that all batches name in the shard of a rank, sorted, and their values: where they are, in the
/// batches of other ranks, or in a buffer of this one.
template <class T, class Space, class Exec>
struct received_rows {
  tensor<std::int64_t, near_space<Exec>> rows{};  ///< in the order (rank, position)
  tensor<std::int64_t, near_space<Exec>>
      numbers{};                               ///< of the values: where they begin, or which row they are
  tensor<double, near_space<Exec>> factors{};  ///< of the values, if the ranks have some
  tensor<T, Space> buffer{};
  row_plan plan{};
  /// Values in place are rows of `width` elements that begin at multiples of the stride, which is shorter:
  /// the plan has the multiples.
  array_ref<const T, Space> values{};
};

/// How such values belong to the plan: they have been checked with the batches.
struct values_of_ranks {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto&, const Named&, const auto&) {}
};

/// Reads the lists of all ranks where they are, by kernels of `shard_exec`, and sorts the rows of the shard
/// of this rank, which has `shard_rows`, if the owner has not done so before, `owned`. So the link to the
/// values works while the kernel of the verb does. `by_place`: the values are those of the positions, whose
/// places the owner has joined, too. With `weighs` the batches offer factors. Enqueues only.
template <class T, class Space, class Exec>
received_rows<T, Space, Exec> receive_in_place(const char* verb, const Exec& shard_exec,
                                               const batch_headers& headers, std::int64_t shard_rows,
                                               std::int64_t width, const owned_rows<Exec>* owned,
                                               bool by_place, bool weighs) {
  using local_list = near_space<Exec>;
  constexpr std::size_t packet = 4 * sizeof(T);  // one load of a kernel, if all values are aligned to it
  const offered_values offered = values_for(headers, packet);
  const std::int64_t items = offered.items;
  received_rows<T, Space, Exec> received;
  received.rows =
      payload<std::int64_t, local_list>(shard_exec, "rows of all ranks", owned == nullptr ? items : 0);
  received.numbers = payload<std::int64_t, local_list>(shard_exec, "begins of values", items);
  received.factors = payload<double, local_list>(shard_exec, "factors of values", weighs ? items : 0);
  received.values.rank = 2;
  received.values.extents = {items, width};
  received.values.make_dense();
  received.values.data = reinterpret_cast<const T*>(offered.lowest);
  received.values.strides[0] = offered.aligned ? 4 : 1;
  const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
  launch_context<Exec> call(shard_exec, verb);
  double* const factors = weighs ? received.factors.data() : nullptr;
  if (items != 0) {
    const bool is_joined = by_place && owned != nullptr && owned->place.size() != 0;
    auto join = lists_for(headers, is_joined ? owned->place.data() : nullptr);
    take_values(join, headers, offered.lowest, offered.aligned ? packet : sizeof(T));
    join.rows = owned == nullptr ? received.rows.data() : nullptr;
    join.begins = received.numbers.data();
    join.factors = factors;
    launch(shard_exec, call.label("pull", "lists"), items, join);
  }
  const row_plan plan =
      owned == nullptr ? make_plan(shard_exec, received.rows, shard_rows, bounds::unchecked{}) : owned->plan;
  received.plan = with_values(call, plan, received.numbers.data(), factors);
  return received;
}

/// numbers[i] += shift[r] for the items of group r. Enqueues only.
template <class Exec>
void shift_groups(launch_context<Exec>& call, std::int64_t* numbers, std::int64_t items,
                  const std::vector<std::int64_t>& begin, std::vector<std::int64_t>&& shift) {
  if (items == 0) return;
  const auto groups = static_cast<int>(shift.size());
  launch(call.exec(), call.label("numbers"), items,
         kernels::shift_numbers{numbers, records_for_kernels(call, std::vector<std::int64_t>(begin)),
                                records_for_kernels(call, std::move(shift)), groups});
}

}  // namespace ferry::detail
