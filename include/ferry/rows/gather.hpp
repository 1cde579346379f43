// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/short_columns.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The rows of a batch in the order of the table's pages. Positions of indices are sorted by pages for a
/// gather that only needs locality: one or two sort passes and none of a plan's other arrays. Enqueued; the
/// launch context owns the arrays.
template <class Bounds, class Exec, class Access, class Batch>
kernels::sorted_batch sort_batch(launch_context<Exec>& call, const Access& access, const Batch& batch) {
  if constexpr (is_plan<Batch>) {
    const plan_storage& store = *batch.storage();
    return {store.sorted_rows, store.order, static_cast<std::uint64_t>(batch.rows())};
  } else {
    using backend = execution_backend<Exec>;
    using index = std::remove_const_t<typename Batch::value_type>;
    const std::int64_t page = backend::tuning(call.exec()).locality_bytes;
    const std::int64_t n = batch.rows(), rows = access.table().rows();
    const std::int64_t row_bytes =
        access.table().row_stride() * static_cast<std::int64_t>(sizeof(typename Access::value_type));
    auto* order = call.template scratch<std::int64_t>(2 * n);
    std::int64_t* spare = order + n;
    auto* keys = call.template scratch<std::uint64_t>(2 * n);
    std::uint64_t* key_room = keys + n;
    const kernels::index_rows<index, Bounds> loader{indices_for_kernels(call, batch), rows,
                                                    Bounds::reports ? call.report() : report_writer{}};
    const std::string& label = call.label("sort");
    launch(call.exec(), label, n, kernels::resolve_indices<index, Bounds>{loader, nullptr, keys, order});
    const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
    const auto rows_of_page = static_cast<std::uint64_t>(page / std::max<std::int64_t>(1, row_bytes));
    const int first_bit = std::min(bits - 1, std::max(0, static_cast<int>(std::bit_width(rows_of_page)) - 1));
    const std::size_t bytes = backend::sort_bytes(n, first_bit, bits);
    auto* room = call.template scratch<std::byte>(static_cast<std::int64_t>(bytes));
    backend::sort_pairs(call.exec(), keys, key_room, order, spare, n, first_bit, bits, room, bytes);
    return {keys, order, static_cast<std::uint64_t>(rows)};
  }
}

/// Gathers from a table in host memory into a batch on the device, by rows sorted on the device. The
/// device's teams gather from the front of the sorted rows. The host's workers gather from the back into
/// slots, and other kernels move those rows to the batch.
template <class Exec, class T, class TableSpace, class Out>
void gather_cooperative(launch_context<Exec>& call, const array_ref<T, TableSpace>& table,
                        const kernels::sorted_batch& batch, const array_ref<Out, device_space>& out) {
  const auto label = label_of("gather", "cooperative");
  const std::int64_t n = out.rows();
  const std::int64_t by_teams = share_rows(
      call, label, std::pair(batch.sorted_rows, n), bytes_of_rows(out, 1),
      [&](const auto& order) { launch_gather(call.exec(), label, table, out, batch, n, order); },
      [&](auto& slots, auto& queue, const Exec& side, const std::uint64_t* rows) {
        slots.to_device(
            queue,
            [&](std::byte* slot, std::int64_t first, std::int64_t count) {
              launch_gather(caller_thread{}, label, table, rows_in_slot<Out>(slot, count, out.width()),
                            kernels::sorted_identity{rows + first, batch.rows}, count);
            },
            [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
              gather_by_slot(
                  side, label, rows_in_slot<const Out>(slot, count, out.width()), out,
                  kernels::sorted_positions{batch.sorted_rows + first, batch.order + first, batch.rows},
                  count);
            });
      });
  moved_by_kernels<path::cooperative>(table, out, bytes_of_rows(table, by_teams));
}

}  // namespace ferry::detail

namespace ferry {

namespace detail {

/// Each different row of a plan is read once, to the first of its positions, and copied from there to the
/// others; both passes give each thread equally many positions, however often a row comes.
template <class Path, class Occupancy, class Exec, class Access, class Out>
void gather_once(launch_context<Exec>& call, const std::string& fetch, const std::string& expand,
                 const Access& access, const row_plan& plan, const Out& out) {
  const std::int64_t n = plan.positions();
  const plan_storage& store = *plan.storage();
  const kernels::segment_heads heads{store.unique_rows, store.segment_begin, store.order, store.unique_count};
  decltype(auto) rows = access.rows(call);
  require_direct_reach(call.verb(), call.exec(), out);
  // A refused verb counts no transfer.
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, access.table(), out, n * access.row_bytes());
  call.writes_to(out);
  const auto order = schedule::limited<Occupancy>(call.exec(), schedule::flat{});
  launch_gather(call.exec(), fetch, rows, out, access.places(call, heads, n, plan.storage()), n, order);
  launch_gather(call.exec(), expand, read_only(out), out, kernels::repeated_positions{heads, store.inverse},
                n, order);
}

/// Gathers on one path. Chosen: the policies of the call.
template <class Path, class Chosen, class Exec, class Access, class Batch, class Out>
ticket run_gather(const Exec& exec, const Access& access, const Batch& batch, const Out& out) {
  using Bounds = typename Chosen::template get<bounds_category, bounds::check>;
  using occupancy_policy = typename Chosen::template get<occupancy_category, occupancy::full>;
  using out_space = typename Out::memory_space;
  const std::int64_t n = positions_of(batch);
  const auto& table = access.table();
  const auto& plan = plan_of(batch);
  launch_context<Exec> call(exec, "gather");
  const auto finish = [&] { return call.finish(table, n, has_signed_indices(batch)); };
  if constexpr (splits_rows<Path>) call.refuse_capture(cooperative_needs_the_host);
  if constexpr (is_plan<Batch>) call.use(plan);
  if (out.width() == 0) look_at_bounds<Bounds>(call, batch, table.rows());
  if (out.size() == 0) return finish();
  const std::string& label = call.label(Access::template path_label<Path>);
  if constexpr (Access::template gathers_apart<Path, Exec, out_space>) {
    access.template gather_apart<Path, Bounds>(call, batch, out);
  } else if constexpr (is_plan<Batch> && !Path::sorts && Access::template gathers_once<out_space>) {
    gather_once<Path, occupancy_policy>(call, label, call.label_part(label, "expand"), access, batch, out);
  } else {
    [[maybe_unused]] const auto traffic = count_transfer<Path>(call, table, out, n * access.row_bytes());
    if constexpr (Path::sorts) {
      require_direct_reach("gather", exec, out);
      call.writes_to(out);
      const auto source = sort_batch<Bounds>(call, access, batch);
      decltype(auto) rows = access.rows(call);
      // Few teams could not saturate device memory.
      using order = std::conditional_t<std::is_same_v<typename Access::memory_space, device_space>,
                                       schedule::flat, schedule::team_chunks>;
      if constexpr (splits_rows<Path> && !is_host_exec<Exec>) {
        call.wait_for_host_access(rows);  // the host reads the table as well
        gather_cooperative(call, rows, source, out);
      } else {
        launch_gather(exec, label, rows, out, access.places(call, source, n, plan), n,
                      schedule::limited<occupancy_policy>(exec, order{}));
      }
    } else {
      require_direct_reach("gather", exec, out);
      call.writes_to(out);
      decltype(auto) rows = access.rows(call);
      // A block of threads moves several of these rows, so it reads each line of indices about once: see
      // indices_for_kernels.
      const bool reads_once = Access::is_strided &&
                              std::is_same_v<typename Access::memory_space, device_space> &&
                              access.row_bytes() <= 4096;
      const auto source = rows_for_kernels<Bounds>(call, batch, table.rows(), reads_once);
      launch_gather(exec, label, rows, out, access.places(call, source, n, plan), n,
                    schedule::limited<occupancy_policy>(exec, schedule::flat{}));
    }
  }
  return finish();
}

/// Chooses the path and gathers. `batch` comes from rows_named_by; require_batch has checked the arguments.
template <class Chosen, class Exec, class Access, class Batch, class Out>
ticket dispatch_gather(const Exec& exec, const Access& access, const Batch& batch, const Out& out) {
  using asked = typename Chosen::template get<path_category, path::automatic>;
  using out_space = typename Out::memory_space;
  if constexpr (Access::may_need_host)
    if (access.needs_host()) return run_gather<path::staged, Chosen>(exec, access, batch, out);
  if constexpr (!Access::is_strided && Access::template gathers_apart<asked, Exec, out_space>) {
    return run_gather<asked, Chosen>(exec, access, batch, out);
  } else {
    constexpr auto paths = paths_to<Access, asked, verb::gather, Exec, out_space>();
    const path_kind best = choose_path<paths, verb::gather, out_space>(exec, access.table(),
                                                                       positions_of(batch), is_plan<Batch>);
    return on_path<paths>(
        best, [&]<class Path>(Path) __attribute__((always_inline)) {
          return run_gather<Path, Chosen>(exec, access, batch, out);
        });
  }
}

}  // namespace detail

/// out[p] = table[indices[p]] for each position p, with conversion if the element types differ.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width, any memory space; or a table of another kind, a cached_table, say, which says
///             what paths it takes
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out       one row per index; must not overlap the table
///   policies  path    default path::automatic
///             bounds  default bounds::check; a plan has its own
///             occupancy  the blocks that its kernels take, default occupancy::full; path::cooperative has
///                        its own
///
/// Asynchronous on a device, except path::staged and path::cooperative, which occupy the calling thread. The
/// operands must live until the work has ended, see ferry::ticket; indices in pageable memory may be reused
/// when the call returns. Throws invalid_argument for shapes that do not fit. ticket::wait() throws
/// out_of_range under bounds::check: the rows of the good positions are then gathered, and those of the bad
/// positions keep their contents.
///
/// If table or out is a Kokkos::View<T*[n], LayoutLeft> of at most 8 columns, rows move column by column, so
/// that neighbouring threads of a device write neighbouring elements. The ticket covers all columns.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::HasRows<Table>&& detail::AnArray<Out>&& detail::Fits<
           detail::gather_arguments, const Exec&, const Table&, const Indices&, Out, Policies...>)
[[nodiscard]] ticket gather(const Exec& exec, const Table& table, const Indices& indices, Out&& out,
                            [[maybe_unused]] Policies... policies) {
  using chosen = detail::chosen_policies<Policies...>;
  if constexpr (detail::ByColumns<Table, Out>) {
    detail::require_output<Out>();
    detail::require_same_width<Table, Out>();
    return detail::move_columns<chosen, void>("gather", exec, detail::read_only(make_ref(table)), indices,
                                              make_ref(out), [&](auto& column, auto& sink, const auto& rows) {
                                                return gather(exec, column, rows, sink, policies...);
                                              });
  } else {
    using access_type = detail::access_to<Table, true>;
    detail::require_row_verb<Exec, typename access_type::checked, Indices, Out,
                             detail::without_occupancy<chosen>, false>();
    detail::require_output<Out>();
    access_type::template require<Exec, chosen, true>();
    const access_type access(table, "gather");
    const auto batch = make_ref(out);
    detail::require_gathered<access_type, typename decltype(batch)::value_type>();
    const auto& rows = detail::rows_named_by(indices);
    using source = std::remove_reference_t<decltype(access.table())>;
    if constexpr (access_type::is_strided &&
                  detail::is_prebuilt_gather<chosen, Exec, source, decltype(rows), decltype(batch)>) {
      return detail::prebuilt_gather(exec, access.table(), rows, batch);
    } else {
      detail::require_batch<Exec, chosen>("gather", access.table(), rows, batch);
      access.require_foreign("gather", rows, batch);
      return detail::dispatch_gather<chosen>(exec, access, rows, batch);
    }
  }
}

}  // namespace ferry
