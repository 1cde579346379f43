// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/reach_shards.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/convert_rows.hpp>
#include <ferry/rows/detail/expand_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/array_device.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// path::peer: kernels that read the shards of all ranks.
namespace ferry::detail {

/// out[source.position(k)] = row source.row(k) of the table for each item k, by the kernels of launch_gather.
template <class Exec, class T, class Spread, class Out, class OutSpace, class Source>
void launch_peer_gather(const Exec& exec, const std::string& label, const reached_shards<T, Spread>& shards,
                        const array_ref<Out, OutSpace>& out, const Source& source, std::int64_t items) {
  const schedule::flat order{};
  const std::int64_t wide = out.width();
  if constexpr (is_host_exec<Exec>) {
    const auto gather_units = [&]<class To, class From>(const From* source_rows, To* sink_rows,
                                                        std::int64_t stride, std::int64_t width) {
      const auto placed = shards.source_in(sizeof(From), source);
      using kernel = kernels::gather_blocks<To, From, std::remove_const_t<decltype(placed)>>;
      const std::int64_t parts = (width + kernel::block - 1) / kernel::block;
      launch(exec, label, order, items, parts,
             kernel{source_rows, 1, sink_rows, stride, width, parts, items, placed});
    };
    if constexpr (std::is_same_v<T, Out>) {
      // Shards need not lie whole elements apart: those of a struct of 12 bytes do not.
      using unit = unit_of<T>;
      const auto units = in_units(out, false);
      gather_units(reinterpret_cast<const unit*>(shards.lowest), static_cast<unit*>(units.data), units.stride,
                   units.width);
    } else {
      gather_units(shards.lowest, out.data, out.row_stride(), wide);
    }
  } else if constexpr (std::is_same_v<T, Out>) {
    const bool in_wide = in_wide_units(out) && shards.in_units_of(sizeof(kernels::opaque16));
    const auto units = in_units(out, in_wide);
    const auto placed = shards.source_in(in_wide ? sizeof(kernels::opaque16) : sizeof(unit_of<T>), source);
    using kernel = kernels::gather_row_pairs<unit_of<T>, std::remove_const_t<decltype(placed)>>;
    const std::int64_t step = kernel::step_for(units.width, in_wide);
    launch(exec, label, order, kernel::pairs(items, step), units.width,
           kernel{shards.lowest, 1, units.data, units.stride, fast_divisor(units.width), placed, items, step,
                  in_wide});
  } else {
    constexpr int packet = kernels::packed_tile::elements;
    const bool packed = in_packets<packet>(out) && shards.in_units_of(packet * sizeof(T));
    const std::int64_t tiles = packed ? wide / packet : wide;
    const auto placed = shards.source_in(sizeof(T), source);
    launch(exec, label, order, items, tiles,
           kernels::convert_rows<Out, T, std::remove_const_t<decltype(placed)>>{
               shards.lowest, 1, out.data, out.row_stride(), fast_divisor(tiles), packed, placed});
  }
}

/// The verb. `named` comes from rows_named_by; the arguments have been checked. With `once` each different
/// row of a plan crosses once.
template <class Bounds, class Exec, class T, class Space, class Spread, class Named, class Out,
          class OutSpace>
ticket gather_from_peers(const Exec& exec, const sharded_table<T, Space, Spread>& table, const Named& named,
                         const array_ref<Out, OutSpace>& out, [[maybe_unused]] bool unique = true) {
  const auto whole = whole_ref(table);
  const std::int64_t n = positions_of(named);
  launch_context<Exec> call(exec, "gather");
  if constexpr (is_plan<Named>) call.use(named.storage());
  if (out.size() != 0) {
    require_direct_reach("gather", exec, out);
    require_array_device("gather", exec, out);
    const auto shards = reach_shards(call, table);
    call.writes_to(out);
    [[maybe_unused]] const auto moving = moves<path::peer>(call, whole, out, bytes_of_rows(whole, n));
    const std::string& label = call.label(path::peer::name);
    if constexpr (is_plan<Named>) {
      const plan_storage& storage = *named.storage();
      if (!unique) {
        launch_peer_gather(exec, label, shards, out, kernels::listed_rows{storage.row_of}, n);
        return call.finish(whole, n, storage.signed_indices);
      }
      // Each different row crosses once, to its first position; the other positions copy it there.
      const kernels::segment_heads heads{storage.unique_rows, storage.segment_begin, storage.order,
                                         storage.unique_count};
      launch_peer_gather(exec, label, shards, out, heads, n);
      launch_gather(exec, call.label(path::peer::name, "expand"), read_only(out), out,
                    kernels::other_places{heads, storage.inverse}, n);
    } else {
      using index = std::remove_const_t<typename Named::value_type>;
      const kernels::index_rows<index, Bounds> source{indices_for_kernels(call, named), whole.rows(),
                                                      Bounds::reports ? call.report() : report_writer{}};
      launch_peer_gather(exec, label, shards, out, source, n);
    }
  }
  if constexpr (is_plan<Named>) {
    return call.finish(whole, n, named.storage()->signed_indices);
  } else {
    if (out.width() == 0) look_at_bounds<Bounds>(call, named, whole.rows());
    return call.finish(whole, n, std::is_signed_v<typename Named::value_type>);
  }
}

/// Checks the arguments of a gather by path::peer and gathers.
template <class Chosen, class Exec, class T, class Space, class Spread, class Indices, class Out>
ticket checked_peer_gather(const Exec& exec, const sharded_table<T, Space, Spread>& table,
                           const Indices& indices, Out& out) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using checked = chosen_policies<path::direct, bounds_policy>;
  require_policies<Chosen, true, false>();
  static_assert(!is_sharded_plan<Indices>,
                "ferry: path::peer takes indices or a row_plan; a sharded_plan has routes for exchanges.");
  static_assert(
      requires { requires Spread::in_kernels; },
      "ferry: path::peer finds the owners of rows in kernels; make owner and local_row of the sharding KOKKOS_FUNCTIONs and declare in_kernels = true.");
  require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Out, checked, false>();
  const auto sink = make_ref(out);
  require_convertible<typename decltype(sink)::value_type, T>();
  const auto& named = rows_named_by(indices);
  using given =
      std::conditional_t<Chosen::template names<bounds_category>, checked, chosen_policies<path::direct>>;
  require_batch<Exec, given>("gather", whole_ref(table), named, sink);
  return gather_from_peers<bounds_policy>(exec, table, named, sink);
}

}  // namespace ferry::detail
