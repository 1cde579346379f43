// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/gather_cooperative.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/sort_places.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace ferry {

namespace detail {

/// Kernels access both sides in the order of `places`. Under path::cooperative the host's workers help.
template <class Path, class Exec, class T, class TableSpace, class Out, class OutSpace>
void gather_sorted(launch_context<Exec>& of, const array_ref<T, TableSpace>& table,
                   const kernels::sorted_places& places, const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = out.rows();
  const std::string& label = of.label(Path::name);
  if constexpr (splits_rows<Path> && !is_host_exec<Exec>) {
    of.wait_for_host_access(table);  // the host reads the table as well
    gather_cooperative(of, table, places, out);
  } else if constexpr (std::is_same_v<TableSpace, device_space>) {
    launch_gather(of.exec(), label, table, out, places, n);  // few teams could not saturate its memory
  } else {
    launch_gather(of.exec(), label, table, out, places, n, schedule::team_chunks{});
  }
}

template <class Exec, class T, class TableSpace, class Out, class OutSpace>
void require_gather_reach(launch_context<Exec>& of, const array_ref<T, TableSpace>& table,
                          const array_ref<Out, OutSpace>& out) {
  require_direct_reach("gather", of.exec(), table);
  require_direct_reach("gather", of.exec(), out);
  of.reads_from(table);
  of.writes_to(out);
}

/// DMA from a page-locked table may still be in flight when the verb returns.
template <class Exec, class T, class TableSpace, class Out, class OutSpace>
void wait_for_staged_gather(launch_context<Exec>& of, const array_ref<T, TableSpace>& table,
                            const array_ref<Out, OutSpace>& out) {
  wait_for_host_access(of, "ferry::gather::staged", table, out);
  if constexpr (is_page_locked<TableSpace>) of.reads_from(table);
}

template <class Path, class Bounds, class Exec, class T, class TableSpace, class Index, class IndexSpace,
          class Out, class OutSpace>
ticket gather_on(const Exec& exec, const array_ref<T, TableSpace>& table,
                 const array_ref<Index, IndexSpace>& indices, const array_ref<Out, OutSpace>& out) {
  using plain = std::remove_const_t<Index>;
  const std::int64_t n = indices.rows();
  launch_context<Exec> of(exec, "gather");
  if constexpr (splits_rows<Path>) of.refuse_capture(two_ends_need_the_host);
  if (out.size() != 0) {
    [[maybe_unused]] const auto moving = moves<Path>(of, table, out, bytes_of_rows(table, n));
    if constexpr (by_host_alone<Path>) {
      wait_for_staged_gather(of, table, out);
      auto* rows = of.template pinned<std::int64_t>(n);
      resolve_on_host<Bounds>(of, indices, table.rows(), rows);
      gather_staged(of, table, rows, out);
    } else {
      require_gather_reach(of, table, out);
      if constexpr (Path::sorts) {
        const std::int64_t row_bytes = table.row_stride() * static_cast<std::int64_t>(sizeof(T));
        gather_sorted<Path>(of, table, sort_by_page<Bounds>(of, indices, table.rows(), row_bytes), out);
      } else {
        const kernels::index_rows<plain, Bounds> source{indices_for_kernels(of, indices), table.rows(),
                                                        Bounds::reports ? of.report() : report_writer{}};
        launch_gather(exec, of.label(Path::name), table, out, source, n);
      }
    }
  }
  if (out.width() == 0) look_at_bounds<Bounds>(of, indices, table.rows());
  return of.finish(table, n, std::is_signed_v<plain>);
}

template <class Path, class Bounds, class Exec, class T, class TableSpace, class Out, class OutSpace>
ticket gather_on(const Exec& exec, const array_ref<T, TableSpace>& table, const row_plan& plan,
                 const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = plan.positions();
  launch_context<Exec> of(exec, "gather");
  if constexpr (splits_rows<Path>) of.refuse_capture(two_ends_need_the_host);
  of.use(plan.storage());
  if (out.size() != 0) {
    const plan_storage& store = *plan.storage();
    [[maybe_unused]] const auto moving = moves<Path>(of, table, out, bytes_of_rows(table, n));
    if constexpr (by_host_alone<Path>) {
      wait_for_staged_gather(of, table, out);
      gather_staged(of, table, plan_array_for_host(of, store.row_of, n), out);
    } else {
      require_gather_reach(of, table, out);
      if constexpr (Path::sorts)
        gather_sorted<Path>(
            of, table,
            kernels::sorted_places{store.sorted_rows, store.order, static_cast<std::uint64_t>(plan.rows())},
            out);
      else
        launch_gather(exec, of.label(Path::name), table, out, kernels::listed_rows{store.row_of}, n);
    }
  }
  return of.finish(table, n, plan.storage()->signed_indices);
}

/// Chooses the path and gathers. `named` comes from rows_named_by; require_batch has checked the arguments.
template <class Asked, class Bounds, class Exec, class T, class TableSpace, class Named, class Out,
          class OutSpace>
ticket gather_by(const Exec& exec, const array_ref<const T, TableSpace>& table, const Named& named,
                 const array_ref<Out, OutSpace>& out) {
  constexpr auto paths = paths_for<Asked, verb::gather, Exec, TableSpace, OutSpace>();
  const path_kind best =
      choose_path<paths, verb::gather, OutSpace>(exec, table, positions_of(named), is_plan<Named>);
  if constexpr (paths.contains(path_kind::ordered))
    if (best == path_kind::ordered) return gather_on<path::ordered, Bounds>(exec, table, named, out);
  if constexpr (paths.contains(path_kind::staged))
    if (best == path_kind::staged) return gather_on<path::staged, Bounds>(exec, table, named, out);
  if constexpr (paths.contains(path_kind::cooperative))
    if (best == path_kind::cooperative) return gather_on<path::cooperative, Bounds>(exec, table, named, out);
  if constexpr (paths.contains(path_kind::direct))
    if (best == path_kind::direct) return gather_on<path::direct, Bounds>(exec, table, named, out);
  return {};  // not reached: the path is one of these
}

}  // namespace detail

/// out[p] = table[indices[p]] for each position p, with conversion where the element types differ.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width, any memory space
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out       one row per index; must not overlap the table
///   policies  path    default path::automatic
///             bounds  default bounds::check; a plan has its own
///
/// Asynchronous on a device, except path::staged and path::cooperative, which occupy the calling thread. The
/// operands must live until the work has ended, see ferry::ticket; indices in pageable memory may be reused
/// when the call returns. Throws invalid_argument for shapes that do not fit. ticket::wait() throws
/// out_of_range under bounds::check: the rows of the good positions are then gathered, and those of the bad
/// positions keep their contents.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::AnArray<Table>&& detail::Fits<detail::gather_arguments, const Exec&, const Table&,
                                                 const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, Table, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  const auto from = detail::read_only(make_ref(table));
  const auto to = make_ref(out);
  detail::require_convertible<typename decltype(to)::value_type, typename decltype(from)::value_type>();
  using asked = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto& named = detail::rows_named_by(indices);
  if constexpr (detail::is_prebuilt_gather<chosen, Exec, decltype(from), decltype(named), decltype(to)>) {
    return detail::prebuilt_gather(exec, from, named, to);
  } else {
    detail::require_batch<Exec, chosen>("gather", from, named, to);
    return detail::gather_by<asked, bounds_policy>(exec, from, named, to);
  }
}

}  // namespace ferry
