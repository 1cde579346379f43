// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/int8/detail/rowwise_int8_rows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry {

namespace detail {

/// Its rows are floats, and its extents are those of the values.
template <class Space>
struct gathered_rows<rowwise_int8_tensor<Space>> {
  using table_for_checks = tensor<std::byte, Space>;
  using element = float;
  static auto extents_of(const rowwise_int8_tensor<Space>& table) { return codes_of(table); }
};

/// The row of each position, -1 for none, for kernels of the execution space. Findings go to the ticket.
template <class Bounds, class Exec, class Indices>
const std::int64_t* resolved_rows(launch_context<Exec>& of, const std::string& label, const Indices& indices,
                                  std::int64_t table_rows) {
  if constexpr (is_plan<Indices>) {
    return indices.storage()->row_of;
  } else {
    const auto which = make_ref(indices);
    using plain = std::remove_const_t<typename decltype(which)::value_type>;
    auto* rows = of.template scratch<std::int64_t>(which.rows());
    const kernels::index_rows<plain, Bounds> source{indices_for_kernels(of, which), table_rows,
                                                    Bounds::reports ? of.report() : report_writer{}};
    launch(of.exec(), label + "::resolve", which.rows(),
           kernels::resolve_indices<plain, Bounds>{source, rows, nullptr, nullptr});
    return rows;
  }
}

/// Converts the records that `rows` names to numbers. One pass if the kernels are near the table and the path
/// allows it; else the ordinary verb gathers the records first, on the user's path.
template <class Path, class Exec, class Space, class Out, class OutSpace>
void gather_records(launch_context<Exec>& of, const std::string& label,
                    const rowwise_int8_tensor<Space>& table, const std::int64_t* rows,
                    const array_ref<Out, OutSpace>& out) {
  constexpr bool plain_path = in_batch_order<Path> || Path::chosen_at_run_time;
  const auto bytes = static_cast<std::int64_t>(table.row_bytes());
  if constexpr (plain_path && is_near<Exec, Space>) {
    const auto stored = make_ref(table.records());
    require_direct_reach("gather", of.exec(), stored);
    of.reads_from(stored);
    [[maybe_unused]] const auto moving = moves<path::direct>(of, stored, out, out.rows() * bytes);
    launch_dequantize(of.exec(), label, table.records().data(), bytes, out, kernels::listed_rows{rows});
  } else {
    const auto records = near_rows<std::byte>(of, out.rows(), bytes, "records");
    auto which = dense_rows<const std::int64_t, near_space<Exec>>(rows, out.rows(), 1, "rows");
    which.rank = 1;
    gather(of.exec(), table.records(), which, records, record_path<Path, Exec, Space>{}, bounds::skip{})
        .drop();
    launch_dequantize(of.exec(), label, records.data, bytes, out, kernels::masked_identity{rows});
  }
}

template <class Path, class Exec, class Space, class Out, class OutSpace>
void gather_dequantized(launch_context<Exec>& of, const rowwise_int8_tensor<Space>& table,
                        const std::int64_t* rows, const array_ref<Out, OutSpace>& out) {
  const auto label = label_of("gather", Path::name);
  constexpr bool through_ring =
      !is_near<Exec, OutSpace> &&
      (by_host_alone<Path> || (Path::chosen_at_run_time && std::is_same_v<OutSpace, pageable_space>));
  if constexpr (through_ring) {
    const std::int64_t n = out.rows();
    const auto batch = near_rows<Out>(of, n, out.width(), "batch");
    gather_records<Path>(of, label, table, rows, batch);
    auto own = near_rows<std::int64_t>(of, n, 1, "positions");
    own.rank = 1;
    launch(of.exec(), label + "::positions", n, kernels::list_positions{rows, own.data});
    gather(of.exec(), batch, own, out, path::staged{}, bounds::skip{}).drop();
  } else {
    require_direct_reach("gather", of.exec(), out);
    of.writes_to(out);
    gather_records<Path>(of, label, table, rows, out);
  }
}

}  // namespace detail

/// out[p] = the values of row indices[p] of an 8-bit table, computed in double and rounded once to float,
/// double, half_t or bhalf_t. Indices, policies, ordering and errors are those of gather for any table.
/// Records travel, and the execution space converts them: in the gathering kernel itself where the table is
/// in its memory and the path is direct.
template <class Exec, class Space, class Indices, class Out, class... Policies>
  requires(detail::Fits<detail::gather_arguments, const Exec&, const rowwise_int8_tensor<Space>&,
                        const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const rowwise_int8_tensor<Space>& table, const Indices& indices, Out&& out,
    Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  detail::require_quantizable<Out>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto from = detail::codes_of(table);
  const auto to = make_ref(out);
  std::int64_t positions = 0;
  bool is_signed = false;
  detail::launch_context<Exec> of(exec, "gather");
  if constexpr (detail::is_plan<Indices>) {
    detail::require_plan<Exec, chosen>("gather", indices, from);
    positions = indices.positions();
    is_signed = indices.storage()->signed_indices;
    of.use(indices.storage());
  } else {
    const auto which = make_ref(indices);
    detail::require_rank_one("gather", which);
    detail::require_a_row_to_clamp_to<bounds_policy>("gather", from, which.rows());
    positions = which.rows();
    is_signed = std::is_signed_v<std::remove_const_t<typename decltype(which)::value_type>>;
  }
  detail::require_shapes("gather", from, positions, to);
  detail::refuse_capture_of_staging<path_policy, Space, typename decltype(to)::memory_space>(of);
  if (to.size() != 0) {
    const auto* rows = detail::resolved_rows<bounds_policy>(of, detail::label_of("gather", path_policy::name),
                                                            indices, from.rows());
    detail::gather_dequantized<path_policy>(of, table, rows, to);
  } else if constexpr (!detail::is_plan<Indices>) {
    detail::look_at_bounds<bounds_policy>(of, make_ref(indices), from.rows());
  }
  return of.finish(from, positions, is_signed);
}

}  // namespace ferry
