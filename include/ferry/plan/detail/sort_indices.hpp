// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace ferry::detail {

/// The bounds policies as values. A policy of the user may resolve an index to any row.
enum class bounds_kind : unsigned char { check, clamp, skip, unchecked, of_user };

template <class Bounds>
consteval bounds_kind kind_of_bounds() {
  if (std::is_same_v<Bounds, bounds::check>) return bounds_kind::check;
  if (std::is_same_v<Bounds, bounds::clamp>) return bounds_kind::clamp;
  if (std::is_same_v<Bounds, bounds::skip>) return bounds_kind::skip;
  if (std::is_same_v<Bounds, bounds::unchecked>) return bounds_kind::unchecked;
  return bounds_kind::of_user;
}

/// The caller's memory for the arrays of a plan, if it gives some.
struct plan_room {
  std::byte* data = nullptr;
  std::string_view space;
  std::shared_ptr<access_tracker> accesses;
};

/// The indices that a plan sorts, and their bounds policy.
template <class Exec>
struct plan_request {
  std::int64_t positions;
  std::int64_t rows;
  std::size_t index_bytes;
  bool signed_indices;
  bounds_kind bounds;
  bool reports;
  std::string_view bounds_name;
  /// Takes the operands into the call. Returns the indices as kernels read them: where they lie, or as a copy
  /// in `copy`, which has room for all.
  function_ref<const void*(launch_context<Exec>& call, void* copy)> enter;
  /// For a policy of the user: row_of[i] = the row of index i, -1 for none.
  function_ref<void(launch_context<Exec>& call, const void* indices, const report_writer& report,
                    std::int64_t* row_of)>
      resolve;
};

/// Sorts the indices by row on `exec`, without synchronisation. The arrays lie in `room`, which has the size
/// of plan_workspace_bytes; without a room they lie in a block of the engine.
template <ExecutionSpace Exec>
row_plan sort_indices(const Exec& exec, const plan_request<Exec>& request, const plan_room& room);

/// The plan of an index array under the policy Bounds, in `room` if that has memory.
template <class Bounds, class Exec, class Index, class Space, class RoomSpace = device_space>
row_plan plan_rows_of(const Exec& exec, const array_ref<Index, Space>& indices, std::int64_t rows,
                      const array_ref<std::byte, RoomSpace>& room = {}) {
  using plain = std::remove_const_t<Index>;
  const auto enter = [&](launch_context<Exec>& call, void* copy) -> const void* {
    if (room.data != nullptr) call.writes_to(room);
    return indices.rows() == 0 ? nullptr : indices_for_kernels(call, indices, static_cast<plain*>(copy));
  };
  const auto resolve = [&]([[maybe_unused]] launch_context<Exec>& call, [[maybe_unused]] const void* source,
                           [[maybe_unused]] const report_writer& report,
                           [[maybe_unused]] std::int64_t* row_of) {
    if constexpr (kind_of_bounds<Bounds>() == bounds_kind::of_user)
      launch(call.exec(), call.label("bounds"), indices.rows(),
             kernels::resolve_indices<plain, Bounds>{
                 {static_cast<const plain*>(source), rows, report}, row_of, nullptr, nullptr});
  };
  return sort_indices(
      exec,
      plan_request<Exec>{indices.rows(), rows, sizeof(plain), std::is_signed_v<plain>,
                         kind_of_bounds<Bounds>(), Bounds::reports, Bounds::name, enter, resolve},
      plan_room{room.data, RoomSpace::name, room.accesses});
}

}  // namespace ferry::detail
