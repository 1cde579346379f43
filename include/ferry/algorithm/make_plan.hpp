#pragma once

#include <ferry/algorithm/checks.hpp>
#include <ferry/algorithm/index_access.hpp>
#include <ferry/execution/call.hpp>
#include <ferry/execution/launch.hpp>
#include <ferry/kernels/index_kernels.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Sorts the indices by row on `exec`; enqueued, without synchronisation.
template <class Bounds, class Exec, class Index, class Space>
row_plan plan_rows_of(const Exec& exec, const array_ref<Index, Space>& indices, std::int64_t rows) {
  using backend = execution_backend<Exec>;
  using plain = std::remove_const_t<Index>;
  const auto n = indices.rows();
  const auto home = engine<backend>::get();
  home->reap();
  call<Exec> of(exec, "make_plan");

  auto plan = std::make_shared<plan_storage>();
  plan->positions = n;
  plan->rows = rows;
  plan->checked = Bounds::reports;
  plan->signed_indices = std::is_signed_v<plain>;
  plan->bounds = Bounds::name;
  plan->backend = backend::name;

  // One block: row_of, inverse, unique_rows, segment_begin (n + 1), unique_count, and two halves of keys and
  // order.
  auto block = home->device_scratch(static_cast<std::size_t>(8 * n + 16) * sizeof(std::int64_t));
  auto* memory = static_cast<std::int64_t*>(block.get());
  plan->resources.push_back(std::move(block));
  plan->row_of = memory;
  plan->inverse = memory + n;
  plan->unique_rows = memory + 2 * n;
  plan->segment_begin = memory + 3 * n;
  plan->unique_count = memory + 4 * n + 1;
  std::int64_t* order = memory + 4 * n + 2;
  std::int64_t* spare = order + n;
  auto* keys = reinterpret_cast<std::uint64_t*>(spare + n);
  std::uint64_t* key_room = keys + n;

  plan->report = home->report();
  plan->read_report = [report = plan->report] { return report_pool<backend>::read(*report); };

  if (n == 0) {
    const std::int64_t none = 0;
    backend::write(plan->unique_count, &none, sizeof none);
  } else {
    const plain* source = indices_for_kernels(of, indices);
    const kernels::index_rows<plain, Bounds> loader{source, rows, *plan->report};
    launch(exec, "ferry::make_plan::resolve", n,
           kernels::resolve_indices<plain, Bounds>{loader, plan->row_of, keys, order});
    const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
    const std::size_t workspace = backend::sort_bytes(n, 0, bits);
    auto* room = of.template scratch<std::byte>(static_cast<std::int64_t>(workspace));
    backend::sort_pairs(exec, keys, key_room, order, spare, n, 0, bits, room, workspace);
    Kokkos::parallel_scan(
        "ferry::make_plan::segments", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, n),
        kernels::find_segments{keys, order, n, static_cast<std::uint64_t>(rows), plan->unique_rows,
                               plan->segment_begin, plan->inverse, plan->unique_count});
  }
  plan->order = order;
  plan->sorted_rows = keys;

  ticket made = of.finish();
  plan->made = backend::record(exec);
  plan->read_unique_count = [raw = plan->unique_count, made_at = plan->made] {
    if (made_at != nullptr) made_at->wait();
    std::int64_t count = 0;
    backend::read(&count, raw, sizeof count);
    return count;
  };
  made.detach();
  return row_plan(std::move(plan));
}

}  // namespace detail

/// Sorts the indices of a batch once, for every verb of that batch on tables of `rows` rows.
///
///   indices
///     rank-1 array of int32, uint32, int64 or uint64; free for reuse when the call returns, unless it lies
///     in device, pinned or mapped memory: then when the plan's first verb has ended
///   rows     rows of the tables that the plan is for
///   policies one bounds policy (default bounds::check); a verb that uses the plan reports what it found
///
/// Enqueued on `exec`; nothing waits for the device. Equal rows keep the order of their positions.
/// Throws invalid_argument where the indices are no contiguous rank-1 array or `rows` is negative.
template <class Exec, class Indices, std::integral Rows, class... Policies>
[[nodiscard]] row_plan make_plan(const Exec& exec, const Indices& indices, Rows rows, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_execution_space<Exec>();
  detail::require_indices<Indices>();
  static_assert(!detail::is_plan<Indices>, "ferry: make_plan takes indices, not another plan.");
  detail::require_policies<chosen, true, false>();
  static_assert(!chosen::template names<path_category>,
                "ferry: make_plan moves no rows, so it takes no path policy.");
  detail::require_reach<Exec, Indices>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  if (std::cmp_less(rows, 0))
    throw invalid_argument("ferry::make_plan: the number of rows is " + std::to_string(rows) +
                           ", must be >= 0");
  const auto ref = make_ref(indices);
  detail::require_rank_one("make_plan", ref);
  detail::require_a_row_to_clamp_to<bounds_policy>("make_plan", static_cast<std::int64_t>(rows), ref.rows());
  return detail::plan_rows_of<bounds_policy>(exec, ref, static_cast<std::int64_t>(rows));
}

}  // namespace ferry
