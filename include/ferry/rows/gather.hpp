// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/short_columns.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The places of a batch in the order of the table's pages. Positions of indices are sorted by pages for a
/// gather that only needs locality: one or two sort passes and none of a plan's other arrays. Enqueued; the
/// launch context owns the arrays.
template <class Bounds, class Exec, class Access, class Named>
kernels::sorted_places sorted_places_of(launch_context<Exec>& call, const Access& access,
                                        const Named& named) {
  if constexpr (is_plan<Named>) {
    const plan_storage& store = *named.storage();
    return {store.sorted_rows, store.order, static_cast<std::uint64_t>(named.rows())};
  } else {
    using backend = execution_backend<Exec>;
    using index = std::remove_const_t<typename Named::value_type>;
    const std::int64_t page = backend::tuning(call.exec()).locality_bytes;
    const std::int64_t n = named.rows(), rows = access.table().rows();
    const std::int64_t row_bytes =
        access.table().row_stride() * static_cast<std::int64_t>(sizeof(typename Access::value_type));
    auto* order = call.template scratch<std::int64_t>(2 * n);
    std::int64_t* spare = order + n;
    auto* keys = call.template scratch<std::uint64_t>(2 * n);
    std::uint64_t* key_room = keys + n;
    const kernels::index_rows<index, Bounds> loader{indices_for_kernels(call, named), rows,
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

/// Gathers from a table in host memory into a batch on the device, by places sorted on the device. The
/// device's teams gather from the front of the sorted places. The host's workers gather from the back into
/// the ring, and other teams move those rows to the batch.
template <class Exec, class T, class TableSpace, class Out>
void gather_cooperative(launch_context<Exec>& call, const array_ref<T, TableSpace>& table,
                        const kernels::sorted_places& places, const array_ref<Out, device_space>& out) {
  const auto label = label_of("gather", "cooperative");
  const std::int64_t n = out.rows();
  const std::int64_t wide = out.width();
  const std::int64_t row_bytes = wide * static_cast<std::int64_t>(sizeof(Out));

  ring<Exec> slots(call, call.side_stream(), label, n, row_bytes,
                   execution_backend<Exec>::tuning(call.exec()).cooperative_workers);
  const split_cursor split(call, n, row_bytes);
  list_from_back<Exec, std::uint64_t> list(call, n);
  split.after(call);
  launch_gather(call.exec(), label, table, out, places, n,
                schedule::team_chunks{nullptr, split.chunk(), split.for_device()});

  list.bring(call, places.sorted_rows);
  auto queue = split.for_host(slots.per_slot());
  slots.to_device(
      queue, mover_from_slot<Exec>(out, places), all_by_ring{},
      [&](const auto& host, std::byte* slot, std::int64_t first, std::int64_t count) {
        const kernels::sorted_identity source{list.await_rows(first, slots), places.rows};
        const auto packed = dense_rows<Out, pinned_space>(reinterpret_cast<Out*>(slot), count, wide, "slot");
        launch_gather(host, label, table, packed, source, count);
        const auto* of_piece = source.sorted_rows;
        return std::any_of(of_piece, of_piece + count, [&](std::uint64_t row) { return row >= places.rows; });
      });
  moved_by_kernels<path::cooperative>(table, out, bytes_of_rows(table, split.left_to_device()));
  split.join(call);
}

}  // namespace ferry::detail

namespace ferry {

namespace detail {

/// Kernels access both sides in the order of the places. Under path::cooperative the host's workers help.
template <class Path, class Exec, class Access, class Out, class OutSpace>
void gather_sorted(launch_context<Exec>& call, const std::string& label, const Access& access,
                   const kernels::sorted_places& source, const std::shared_ptr<plan_storage>& plan,
                   const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = out.rows();
  decltype(auto) rows = access.rows(call);
  if constexpr (splits_rows<Path> && !is_host_exec<Exec>) {
    call.wait_for_host_access(rows);  // the host reads the table as well
    gather_cooperative(call, rows, source, out);
  } else if constexpr (std::is_same_v<typename Access::memory_space, device_space>) {
    // Without team_chunks: few teams could not saturate device memory.
    launch_gather(call.exec(), label, rows, out, access.places(call, source, n, plan), n);
  } else {
    launch_gather(call.exec(), label, rows, out, access.places(call, source, n, plan), n,
                  schedule::team_chunks{});
  }
}

/// Each different row of a plan is read once, to the first of its positions, and copied from there to the
/// others; both passes give each thread equally many positions, however often a row comes.
template <class Exec, class Access, class Out, class OutSpace>
void gather_once(launch_context<Exec>& call, const std::string& fetch, const std::string& expand,
                 const Access& access, const row_plan& plan, const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = plan.positions();
  const plan_storage& store = *plan.storage();
  const kernels::segment_heads heads{store.unique_rows, store.segment_begin, store.order, store.unique_count};
  decltype(auto) rows = access.rows(call);
  require_direct_reach(call.verb(), call.exec(), out);
  call.writes_to(out);
  launch_gather(call.exec(), fetch, rows, out, access.places(call, heads, n, plan.storage()), n);
  launch_gather(call.exec(), expand, read_only(out), out, kernels::other_places{heads, store.inverse}, n);
}

template <class Path, class Bounds, class Exec, class Access, class Named, class Out, class OutSpace>
ticket run_gather(const Exec& exec, const Access& access, const Named& named,
                  const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = positions_of(named);
  const auto& table = access.table();
  const auto& plan = plan_of(named);
  launch_context<Exec> call(exec, "gather");
  if constexpr (splits_rows<Path>) call.refuse_capture(cooperative_needs_the_host);
  if constexpr (is_plan<Named>) call.use(plan);
  if (out.size() != 0) {
    const std::string& label = call.label(Access::template path_label<Path>);
    if constexpr (Access::template gathers_apart<Path, Exec, OutSpace>) {
      access.template gather_apart<Path, Bounds>(call, named, out);
    } else if constexpr (is_plan<Named> && !Path::sorts && Access::template gathers_once<OutSpace>) {
      [[maybe_unused]] const auto traffic = count_transfer<Path>(call, table, out, n * access.row_bytes());
      gather_once(call, label, call.label_part(label, "expand"), access, named, out);
    } else {
      [[maybe_unused]] const auto traffic = count_transfer<Path>(call, table, out, n * access.row_bytes());
      require_direct_reach("gather", exec, out);
      call.writes_to(out);
      if constexpr (Path::sorts) {
        gather_sorted<Path>(call, label, access, sorted_places_of<Bounds>(call, access, named), plan, out);
      } else {
        decltype(auto) rows = access.rows(call);
        // A block of threads moves several of these rows, so it reads each line of indices about once: see
        // indices_for_kernels.
        const bool reads_once = Access::is_strided &&
                                std::is_same_v<typename Access::memory_space, device_space> &&
                                access.row_bytes() <= 4096;
        const auto source = rows_for_kernels<Bounds>(call, named, table.rows(), reads_once);
        launch_gather(exec, label, rows, out, access.places(call, source, n, plan), n);
      }
    }
  }
  if constexpr (!is_plan<Named>)
    if (out.width() == 0) look_at_bounds<Bounds>(call, named, table.rows());
  return call.finish(table, n, has_signed_indices(named));
}

/// Chooses the path and gathers. `named` comes from rows_named_by; require_batch has checked the arguments.
template <class Asked, class Bounds, class Exec, class Access, class Named, class Out, class OutSpace>
ticket dispatch_gather(const Exec& exec, const Access& access, const Named& named,
                       const array_ref<Out, OutSpace>& out) {
  if constexpr (Access::may_need_host)
    if (access.needs_host()) return run_gather<path::staged, Bounds>(exec, access, named, out);
  if constexpr (!Access::is_strided && Access::template gathers_apart<Asked, Exec, OutSpace>) {
    return run_gather<Asked, Bounds>(exec, access, named, out);
  } else {
    constexpr auto paths = paths_to<Access, Asked, verb::gather, Exec, OutSpace>();
    const path_kind best =
        choose_path<paths, verb::gather, OutSpace>(exec, access.table(), positions_of(named), is_plan<Named>);
    if constexpr (paths.contains(path_kind::ordered))
      if (best == path_kind::ordered) return run_gather<path::ordered, Bounds>(exec, access, named, out);
    if constexpr (paths.contains(path_kind::staged))
      if (best == path_kind::staged) return run_gather<path::staged, Bounds>(exec, access, named, out);
    if constexpr (paths.contains(path_kind::cooperative))
      if (best == path_kind::cooperative)
        return run_gather<path::cooperative, Bounds>(exec, access, named, out);
    if constexpr (paths.contains(path_kind::direct))
      if (best == path_kind::direct) return run_gather<path::direct, Bounds>(exec, access, named, out);
    return {};  // not reached: the path is one of these
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
///
/// Asynchronous on a device, except path::staged and path::cooperative, which occupy the calling thread. The
/// operands must live until the work has ended, see ferry::ticket; indices in pageable memory may be reused
/// when the call returns. Throws invalid_argument for shapes that do not fit. ticket::wait() throws
/// out_of_range under bounds::check: the rows of the good positions are then gathered, and those of the bad
/// positions keep their contents.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::HasRows<Table>&& detail::AnArray<Out>&& detail::Fits<
           detail::gather_arguments, const Exec&, const Table&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::access_to<Table, true>;
  detail::require_row_verb<Exec, typename access_type::checked, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  access_type::template require<Exec, chosen, true>();
  using asked = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const access_type access(table, "gather");
  const auto batch = make_ref(out);
  detail::require_gathered<access_type, typename decltype(batch)::value_type>();
  const auto& named = detail::rows_named_by(indices);
  using source = std::remove_reference_t<decltype(access.table())>;
  if constexpr (access_type::is_strided &&
                detail::is_prebuilt_gather<chosen, Exec, source, decltype(named), decltype(batch)>) {
    return detail::prebuilt_gather(exec, access.table(), named, batch);
  } else {
    detail::require_batch<Exec, chosen>("gather", access.table(), named, batch);
    access.require_foreign("gather", named, batch);
    return detail::dispatch_gather<asked, bounds_policy>(exec, access, named, batch);
  }
}

/// As above, if table or out is a Kokkos::View<T*[n], LayoutLeft> of at most 8 columns: column by column, so
/// that neighbouring threads of a device write neighbouring elements. The ticket covers all columns.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::HasRows<Table>&& detail::AnArray<Out>&&
               detail::Fits<detail::gather_arguments, const Exec&, const Table&, const Indices&, Out,
                            Policies...>&& detail::ByColumns<Table, Out>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies... policies) {
  detail::require_output<Out>();
  detail::require_same_width<Table, Out>();
  return detail::move_columns<detail::chosen_policies<Policies...>, false>(
      "gather", exec, detail::read_only(make_ref(table)), indices, make_ref(out),
      [&](auto& column, auto& sink, const auto& rows) {
        return gather(exec, column, rows, sink, policies...);
      },
      [](auto&, const auto&) {});
}

}  // namespace ferry
