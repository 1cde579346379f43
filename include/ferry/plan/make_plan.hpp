// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/index_keys.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/plan/plan_workspace_bytes.hpp>
#include <ferry/runtime/detail/device_span.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Scratch memory of the sort of a plan.
struct sort_room {
  std::uint64_t* keys;
  std::uint64_t* other_keys;
  unsigned int* arrived;  ///< 0 between kernels
  const plan_layout& at;
  std::byte* scratch;

  [[nodiscard]] int last_bit() const { return at.position_bits + at.key_bits; }
};

/// Makes the arrays of a plan in one launch, where the backend of a device has one for that many positions.
template <class Exec, class Keys>
bool place_in_one_launch([[maybe_unused]] launch_context<Exec>& of, [[maybe_unused]] const Keys& key_of,
                         [[maybe_unused]] const kernels::place_segments& segments,
                         [[maybe_unused]] const sort_room& room) {
  if constexpr (is_host_exec<Exec>) {
    return false;
  } else {
    if (!execution_backend<Exec>::sorts_in_one_launch(of.exec(), segments.from.count)) return false;
    const std::string& label = of.label("sort");
    const tool_kernel reported(of.exec(), label);
    const device_span<Exec> span(of.exec(), label, "kernel");
    return execution_backend<Exec>::sort_and_place(of.exec(), key_of, segments, room.keys, room.other_keys,
                                                   room.arrived, segments.from.count, room.at.position_bits,
                                                   room.last_bit(), room.scratch, room.at.sort_bytes);
  }
}

/// Makes the sorted keys and their running sums, for the kernel `segments`. Returns memory for the runs.
template <class Exec, class Index, class Bounds>
std::int64_t* sort_into(launch_context<Exec>& of, const kernels::row_keys<Index, Bounds>& key_of,
                        kernels::place_segments& segments, const sort_room& room) {
  using backend = execution_backend<Exec>;
  const std::int64_t n = segments.from.count;
  std::uint64_t* sorted = room.keys;
  launch(of.exec(), of.label("resolve"), n, kernels::key_indices<Index, Bounds>{key_of, sorted});
  {
    const device_span<Exec> span(of.exec(), "ferry::make_plan::sort", "kernel");
    backend::sort_keys(of.exec(), sorted, room.other_keys, n, room.at.position_bits, room.last_bit(),
                       room.scratch, room.at.sort_bytes);
  }
  // The sort returns the buffer with the result; the other one is free now.
  segments.from.keys = sorted;
  segments.run_begin = reinterpret_cast<std::int64_t*>(sorted == room.keys ? room.other_keys : room.keys);
  backend::inclusive_sum(of.exec(), segments.from, segments.sorted_rows, n, room.scratch, room.at.sort_bytes);
  return segments.run_begin;
}

/// Sorts the indices by row on `exec`, without synchronisation. The arrays lie in `room`, which has the size
/// of layout_of_plan; without a room they lie in a block of the engine.
template <class Bounds, class Exec, class Index, class Space, class RoomSpace = device_space>
row_plan plan_rows_of(const Exec& exec, const array_ref<Index, Space>& indices, std::int64_t rows,
                      const array_ref<std::byte, RoomSpace>& room = {}) {
  using backend = execution_backend<Exec>;
  using plain = std::remove_const_t<Index>;
  const auto n = indices.rows();
  const auto home = engine::get(exec);
  launch_context<Exec> of(exec, "make_plan");
  of.refuse_capture(
      "but sorting indices can't be repeated by a graph; make the plan before the capture, or use duplicates::assume_unique");

  auto plan = std::allocate_shared<plan_storage>(node_allocator<plan_storage>(home->nodes()));
  plan->positions = n;
  plan->rows = rows;
  plan->checked = Bounds::reports;
  plan->signed_indices = std::is_signed_v<plain>;
  plan->bounds = Bounds::name;
  plan->backend = backend::name;
  plan->space = room.data != nullptr ? RoomSpace::name : backend::scratch_space::name;
  plan->on_host = is_host_exec<Exec>;
  plan->device = backend::device_of(exec);

  const plan_layout at = layout_of_plan<backend>(n, rows);
  std::byte* workspace = room.data;
  if (workspace != nullptr) {
    of.writes_to(room);
    plan->accesses = room.accesses;
  } else {
    plan->memory = of.block(at.bytes);
    workspace = static_cast<std::byte*>(plan->memory.get());
  }
  const auto array = [workspace](std::size_t place) {
    return reinterpret_cast<std::int64_t*>(workspace + place);
  };
  plan->row_of = array(at.row_of);
  plan->inverse = array(at.inverse);
  plan->unique_rows = array(at.unique_rows);
  plan->unique_count = array(at.counts);
  plan->run_count = array(at.counts) + 1;
  plan->order = array(at.order);
  plan->segment_begin = array(at.segment_begin);
  auto* sorted_rows = reinterpret_cast<std::uint64_t*>(workspace + at.sorted_rows);
  plan->sorted_rows = sorted_rows;
  auto* const keys = reinterpret_cast<std::uint64_t*>(workspace + at.keys[0]);
  auto* const other_keys = reinterpret_cast<std::uint64_t*>(workspace + at.keys[1]);

  plan->report = home->report();
  of.hold(plan->report);
  plan->report_of = &read_report<Exec>;

  // Indices that are copied to the device use the memory of segment_begin, which is written later.
  const plain* source =
      n != 0 ? indices_for_kernels(of, indices, reinterpret_cast<plain*>(plan->segment_begin)) : nullptr;
  const kernels::row_keys<plain, Bounds> key_of{
      {source, rows, *plan->report}, plan->row_of, at.position_bits};
  plan->run_begin = array(at.keys[1]);
  kernels::place_segments segments{{keys, n, static_cast<std::uint64_t>(rows), at.position_bits},
                                   sorted_rows,
                                   plan->order,
                                   plan->unique_rows,
                                   plan->segment_begin,
                                   plan->run_begin,
                                   plan->inverse,
                                   plan->unique_count,
                                   plan->run_count};
  const sort_room room_of_sort{keys, other_keys, &plan->report->findings->arrived, at, workspace + at.sort};
  const auto in_one_launch = [&] {
    if constexpr (kernels::is_own_bounds<Bounds>)
      return place_in_one_launch(of, kernels::any_row_keys::of(key_of), segments, room_of_sort);
    else
      return place_in_one_launch(of, key_of, segments, room_of_sort);
  };
  if (n == 0 || !in_one_launch()) {
    if (n != 0) plan->run_begin = sort_into(of, key_of, segments, room_of_sort);
    launch(exec, of.label("segments"), n == 0 ? 1 : n, segments);
  }

  ticket made = of.finish();
  plan->made = of.done();
  plan->made_by = of.id();
  plan->unique_count_of = [](const plan_storage& of_plan) {
    if (of_plan.made != nullptr) of_plan.made->wait();
    std::int64_t count = 0;
    backend::read(&count, of_plan.unique_count, sizeof count);
    return count;
  };
  made.drop();
  return row_plan(std::move(plan));
}

template <class Exec, class Indices, class Chosen>
consteval void require_plan_arguments() {
  require_execution_space<Exec>();
  require_indices<Indices>();
  static_assert(!is_plan<Indices>, "ferry: make_plan takes indices, not another plan.");
  require_policies<Chosen, true, false>();
  static_assert(!Chosen::template names<path_category>,
                "ferry: make_plan moves no rows, so it takes no path policy.");
  require_reach<Exec, Indices>();
}

template <class Bounds, class Rows>
void require_plan_shapes(const auto& indices, Rows rows) {
  if (std::cmp_less(rows, 0))
    throw invalid_argument("ferry::make_plan: the number of rows is " + std::to_string(rows) +
                           ", must be >= 0");
  require_rank_one("make_plan", indices);
  require_a_row_to_clamp_to<Bounds>("make_plan", static_cast<std::int64_t>(rows), indices.rows(),
                                    [] { return std::string("the table"); });
}

template <class Exec, class Room>
void require_workspace(const Exec& exec, const Room& room, std::int64_t positions, std::int64_t rows) {
  const typename execution_backend<Exec>::device_guard on(exec);
  const auto needed = layout_of_plan<execution_backend<Exec>>(positions, rows).bytes;
  const auto complain = [&](const std::string& what) {
    throw invalid_argument("ferry::make_plan: the workspace " + room.describe() + " " + what + "; " +
                           std::to_string(needed) + " bytes are needed, " + std::to_string(room.rows()) +
                           " given");
  };
  if (room.rank != 1 || !room.is_contiguous()) complain("must be contiguous and of rank 1");
  if (std::cmp_less(room.rows(), needed)) complain("is too small");
  const auto past = reinterpret_cast<std::uintptr_t>(room.data) % plan_workspace_alignment;
  if (past != 0)
    complain("begins " + std::to_string(past) + " bytes after a multiple of " +
             std::to_string(plan_workspace_alignment));
  require_direct_reach("make_plan", exec, room);
}

}  // namespace detail

/// Sorts the indices of a batch once, for every verb of that batch on tables of `rows` rows.
///
///   exec      the execution space instance that the sort is enqueued on
///   indices   contiguous rank-1 array of int32, uint32, int64 or uint64; in pageable memory it may be reused
///             when the call returns, else when the first verb with the plan has ended
///   rows      rows of the tables that the plan is for
///   policies  bounds  default bounds::check; a verb that uses the plan reports the bad indices
///
/// Does not wait for the device. Equal rows keep the order of their positions. Throws invalid_argument where
/// the indices are not a contiguous rank-1 array, where `rows` is negative, for more than 2^31 indices, where
/// the bits of a row number and of a position exceed 64, and where `exec` is being captured into a graph.
template <class Exec, class Indices, std::integral Rows, class... Policies>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_indices<Indices>()) ==
           detail::flaw::none)
[[nodiscard]] row_plan make_plan(const Exec& exec, const Indices& indices, Rows rows, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto ref = detail::read_only(make_ref(indices));
  detail::require_plan_shapes<bounds_policy>(ref, rows);
  if constexpr (detail::is_prebuilt_plan<chosen, Exec, decltype(ref)>)
    return detail::prebuilt_plan(exec, ref, static_cast<std::int64_t>(rows));
  else
    return detail::plan_rows_of<bounds_policy>(exec, ref, static_cast<std::int64_t>(rows));
}

/// As above, with the arrays of the plan in memory of the caller, so that a step allocates no memory for
/// them.
///
///   workspace  rank-1 array of std::byte that kernels of `exec` reach (tensor<std::byte, device_space>; on a
///              host backend also a span), aligned to 16 bytes, with at least
///              plan_workspace_bytes(exec, number of indices, rows) bytes
///
/// The workspace must live until the plan is destroyed and all verbs with it have ended. It may be passed to
/// the next make_plan once the last of those verbs is enqueued: on any instance where the workspace is a
/// ferry::tensor, else on the same instance. The library still allocates a report from a pool, and for
/// pageable indices and a device a page-locked copy. Throws invalid_argument for a workspace that is too
/// small or misaligned.
template <class Exec, class Indices, std::integral Rows, class Workspace, class... Policies>
  requires(ArrayLike<std::remove_reference_t<Workspace>>&& detail::first_of(
               detail::flaw_of_execution_space<Exec>(), detail::flaw_of_indices<Indices>()) ==
           detail::flaw::none)
[[nodiscard]] row_plan make_plan(const Exec& exec, const Indices& indices, Rows rows, Workspace&& workspace,
                                 Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  static_assert(std::is_same_v<typename detail::traits_of<Workspace>::value_type, std::byte>,
                "ferry: the workspace of make_plan must be an array of std::byte that may be written.");
  detail::require_reach<Exec, Workspace>();
  detail::require_lasting<Workspace>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto ref = detail::read_only(make_ref(indices));
  detail::require_plan_shapes<bounds_policy>(ref, rows);
  const auto room = make_ref(workspace);
  detail::require_workspace(exec, room, ref.rows(), static_cast<std::int64_t>(rows));
  return detail::plan_rows_of<bounds_policy>(exec, ref, static_cast<std::int64_t>(rows), room);
}

}  // namespace ferry
