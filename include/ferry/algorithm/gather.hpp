#pragma once

#include <ferry/algorithm/checks.hpp>
#include <ferry/algorithm/index_access.hpp>
#include <ferry/algorithm/move_rows.hpp>
#include <ferry/execution/call.hpp>
#include <ferry/execution/launch.hpp>
#include <ferry/execution/ring.hpp>
#include <ferry/execution/transfer.hpp>
#include <ferry/kernels/index_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace ferry {

namespace detail {

/// Rows through host memory, in the caller's thread. `rows` lists the table row of each position, -1 for
/// none.
template <class Exec, class T, class TableSpace, class Out, class OutSpace>
void gather_staged(call<Exec>& of, const array_ref<T, TableSpace>& table, const std::int64_t* rows,
                   const array_ref<Out, OutSpace>& out) {
  const auto host = host_side(of.exec());
  const auto label = label_of("gather", "staged");
  const std::int64_t n = out.rows();
  const std::int64_t wide = out.width();
  if constexpr (TableSpace::is_host_accessible && OutSpace::is_host_accessible) {
    launch_gather(host, label, table, out, kernels::listed_rows{rows}, n);
    host.fence(label);
  } else if constexpr (TableSpace::is_host_accessible) {
    ring<Exec> slots(of, n, wide * static_cast<std::int64_t>(sizeof(Out)));
    slots.to_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          const auto packed =
              dense_rows<Out, pinned_space>(reinterpret_cast<Out*>(slot), count, wide, "slot");
          launch_gather(host, label, table, packed, kernels::listed_rows{rows + first}, count);
          host.fence(label);
        },
        [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
          for_each_run(rows, out, first, count, [&](std::int64_t begin, std::int64_t length) {
            transfer(of.exec(), "ferry::gather::staged", out.data + begin * out.row_stride(), OutSpace::name,
                     slot + (begin - first) * wide * static_cast<std::int64_t>(sizeof(Out)),
                     pinned_space::name, length * wide * static_cast<std::int64_t>(sizeof(Out)));
          });
        });
  } else {
    // From the device: gathered there into a dense batch, which the ring brings to the host.
    auto* listed = of.template scratch<std::int64_t>(n);
    transfer(of.exec(), "ferry::indices", listed, device_space::name, rows, pinned_space::name,
             n * static_cast<std::int64_t>(sizeof(std::int64_t)));
    const auto dense = dense_rows<Out, device_space>(of.template scratch<Out>(n * wide), n, wide, "batch");
    launch_gather(of.exec(), label, table, dense, kernels::listed_rows{listed}, n);
    ring<Exec> slots(of, n, wide * static_cast<std::int64_t>(sizeof(Out)));
    slots.from_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          transfer(of.exec(), "ferry::gather::staged", slot, pinned_space::name, dense.data + first * wide,
                   device_space::name, count * wide * static_cast<std::int64_t>(sizeof(Out)));
        },
        [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
          const auto packed =
              dense_rows<const Out, pinned_space>(reinterpret_cast<const Out*>(slot), count, wide, "slot");
          launch_gather(host, label, packed, rows_from(out, first, count), kernels::own_row{rows + first},
                        count);
          host.fence(label);
        });
  }
}

template <class Path, class Bounds, class Exec, class T, class TableSpace, class Index, class IndexSpace,
          class Out, class OutSpace>
ticket gather_by_index(const Exec& exec, const array_ref<T, TableSpace>& table,
                       const array_ref<Index, IndexSpace>& indices, const array_ref<Out, OutSpace>& out) {
  using plain = std::remove_const_t<Index>;
  const std::int64_t n = indices.rows();
  call<Exec> of(exec, "gather");
  if (out.size() != 0) {
    if constexpr (std::is_same_v<Path, path::direct>) {
      require_direct_reach("gather", exec, table);
      require_direct_reach("gather", exec, out);
      of.reads_from(table);
      of.writes_to(out);
      const kernels::index_rows<plain, Bounds> source{indices_for_kernels(of, indices), table.rows(),
                                                      Bounds::reports ? of.report() : report_writer{}};
      launch_gather(exec, label_of("gather", Path::name), table, out, source, n);
    } else {
      settle(of, "ferry::gather::staged", table, out);
      auto* rows = of.template pinned<std::int64_t>(n);
      resolve_on_host<Bounds>(of, "gather", indices, table.rows(), rows);
      gather_staged(of, table, rows, out);
    }
  }
  return of.finish(table, n, std::is_signed_v<plain>);
}

template <class Path, class Exec, class T, class TableSpace, class Out, class OutSpace>
ticket gather_by_plan(const Exec& exec, const array_ref<T, TableSpace>& table, const row_plan& plan,
                      const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = plan.positions();
  call<Exec> of(exec, "gather");
  of.use(plan);
  if (out.size() != 0) {
    if constexpr (std::is_same_v<Path, path::direct>) {
      require_direct_reach("gather", exec, table);
      require_direct_reach("gather", exec, out);
      of.reads_from(table);
      of.writes_to(out);
      launch_gather(exec, label_of("gather", Path::name), table, out,
                    kernels::listed_rows{plan.storage()->row_of}, n);
    } else {
      settle(of, "ferry::gather::staged", table, out);
      gather_staged(of, table, plan_array_for_host(of, plan.storage()->row_of, n), out);
    }
  }
  return of.finish(table, n, plan.storage()->signed_indices);
}

}  // namespace detail

/// out[p] = table[indices[p]] for each position p, converting the element type where the two differ.
///
///   table    rows x width, any memory space
///   indices  rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out      one row for each index; must not overlap the table
///   policies a path (default path::automatic) and a bounds policy (default bounds::check; a plan has its
///   own)
///
/// Enqueued on `exec`; path::staged occupies the calling thread. Operands must live until the ticket says
/// that the work has ended, except indices in pageable memory, which are free when the call returns. Throws
/// invalid_argument for shapes that do not fit. ticket::wait() throws out_of_range under bounds::check; rows
/// of the good positions are then gathered, those of the bad ones as they were.
template <class Exec, class Table, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, Table, Indices, Out, chosen, false>();
  detail::require_mutable<Out>();
  const auto from = make_ref(table);
  const auto to = make_ref(out);
  detail::require_convertible<typename decltype(to)::value_type, typename decltype(from)::value_type>();
  using path_policy = detail::resolved_path<typename chosen::template get<path_category, path::automatic>,
                                            Exec, typename detail::traits_of<Table>::memory_space,
                                            typename detail::traits_of<Out>::memory_space>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  if constexpr (detail::is_plan<Indices>) {
    detail::require_plan<Exec, chosen>("gather", indices, from);
    detail::require_shapes("gather", from, indices.positions(), to);
    return detail::gather_by_plan<path_policy>(exec, from, indices, to);
  } else {
    const auto which = make_ref(indices);
    detail::require_rank_one("gather", which);
    detail::require_shapes("gather", from, which.rows(), to);
    detail::require_a_row_to_clamp_to<bounds_policy>("gather", from.rows(), which.rows());
    return detail::gather_by_index<path_policy, bounds_policy>(exec, from, which, to);
  }
}

}  // namespace ferry
