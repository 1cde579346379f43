// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/find_places.hpp>
#include <ferry/cache/detail/finds_while_gathering.hpp>
#include <ferry/cache/detail/flush_rows.hpp>
#include <ferry/cache/detail/gather_found.hpp>
#include <ferry/cache/detail/stage_rows.hpp>
#include <ferry/int8/detail/rowwise_int8_rows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/rows/detail/expand_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// Item i is the place of a plan's row i. It goes to the first position that names the row.
struct placed_heads {
  const std::int64_t* places = nullptr;
  segment_heads heads;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t segment, bool) const { return places[segment]; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t segment) const { return heads.position(segment); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows that indices name; reports bad ones.
template <class Bounds, class Exec, class Indices>
auto index_rows_of(launch_context<Exec>& of, const row_cache& cache, const Indices& indices) {
  return kernels::index_rows<std::remove_const_t<typename Indices::value_type>, Bounds>{
      indices_for_kernels(of, indices), cache.rows, Bounds::reports ? of.report() : report_writer{}};
}

/// The place of every position's row in the virtual table, -1 where it has none. Reports bad indices.
template <class Bounds, class Exec, class Named>
const std::int64_t* places_of(launch_context<Exec>& of, row_cache& cache, const Named& named,
                              const kernels::place_rule& rule) {
  const std::int64_t n = positions_of(named), every = counting_step(n);
  auto* places = of.template scratch<std::int64_t>(n);
  if constexpr (is_plan<Named>) {
    const bool counts = begin_batch(of, cache, named.storage(), false);
    if (counts) cache.counted_every = every;
    const kernels::listed_rows rows{named.storage()->row_of};
    find_places(of, cache, kernels::counted_positions<kernels::listed_rows>{rows, every}, n, rule, counts,
                false, places);
  } else {
    const auto rows = index_rows_of<Bounds>(of, cache, named);
    const bool counts = begin_batch(of, cache, nullptr, false);
    if (counts) cache.counted_every = every;
    using source = std::remove_const_t<decltype(rows)>;
    find_places(of, cache, kernels::counted_positions<source>{rows, every}, n, rule, counts, false, places);
  }
  return places;
}

/// The place of each of a plan's rows, -1 after the last one.
template <class Exec>
const std::int64_t* places_of_unique(launch_context<Exec>& of, row_cache& cache, const row_plan& plan,
                                     const kernels::place_rule& rule) {
  const std::int64_t n = plan.positions();
  const plan_storage& from = *plan.storage();
  auto* places = of.template scratch<std::int64_t>(n);
  const bool counts = begin_batch(of, cache, plan.storage(), false);
  if (counts) cache.counted_every = 1;
  find_places(of, cache, kernels::counted_segments{from.unique_rows, from.segment_begin, from.unique_count},
              n, rule, counts, false, places);
  return places;
}

/// out[p] = the row of position p: one kernel looks the rows up, another moves those of device memory and
/// those of host memory alike. For short rows, where uses are not counted and a lookup reads one sector, one
/// kernel does both. With a plan and a batch in device memory, each row is fetched once, to the
/// first of its positions, and copied from there to the others; both passes give each thread equally many
/// positions, however often a row comes. Codes: the table has 8-bit rows, which become numbers.
template <class Bounds, bool Codes, class Exec, class T, class TableSpace, class Named, class Out,
          class OutSpace>
ticket gather_cached(const Exec& exec, row_cache& cache, const array_ref<const T, TableSpace>& table,
                     const Named& named, const array_ref<Out, OutSpace>& out) {
  require_foreign("gather", cache, named, out);
  const std::int64_t n = positions_of(named);
  constexpr bool once = is_plan<Named> && std::is_same_v<OutSpace, device_space>;
  launch_context<Exec> of(exec, "gather");
  bool is_signed = true;
  if constexpr (is_plan<Named>) {
    of.use(named.storage());
    is_signed = named.storage()->signed_indices;
  } else {
    is_signed = std::is_signed_v<std::remove_const_t<typename Named::value_type>>;
  }
  if (out.size() != 0) {
    const std::string& label = of.label("cached");
    [[maybe_unused]] const auto moving = moves<path::direct>(of, table, out, bytes_of_rows(table, n));
    require_direct_reach("gather", exec, out);
    if constexpr (std::is_same_v<TableSpace, pageable_space> && !Codes)
      if (cache.stage != nullptr) {
        of.refuse_capture("but host threads bring rows of this table, which a graph can't repeat");
        of.writes_to(out);
        gather_by_host(of, cache, table, places_of<Bounds>(of, cache, named, codes_of_rows(cache)), n, out);
        return of.finish(table, n, is_signed);
      }
    require_direct_reach("gather", exec, table);
    of.reads_from(table);
    of.writes_to(out);
    kernels::place_rule rule{};
    const auto both = virtual_table(table, cache.arrays.front(), rule);
    const auto move = [&](const auto& from) {
      if constexpr (Codes)
        launch_dequantize(exec, label, both.data, both.row_stride(), out, from);
      else
        launch_gather(exec, label, both, out, from, n);
    };
    if constexpr (once) {
      const std::string& expand = of.label("cached", "expand");
      const plan_storage& from = *named.storage();
      const kernels::segment_heads heads{from.unique_rows, from.segment_begin, from.order, from.unique_count};
      move(kernels::placed_heads{places_of_unique(of, cache, named, rule), heads});
      launch_gather(exec, expand, read_only(out), out, kernels::other_places{heads, from.inverse}, n);
    } else {
      if constexpr (!is_plan<Named> && !Codes && !is_host_exec<Exec> && std::is_same_v<T, Out>)
        if (finds_while_gathering(cache, bytes_of_rows(out, 1))) {
          const auto rows = index_rows_of<Bounds>(of, cache, named);
          begin_batch(of, cache, nullptr, false);
          launch_gather_found(of, cache, label, both, out, rows, rule, n);
          return of.finish(table, n, is_signed);
        }
      move(kernels::listed_rows{places_of<Bounds>(of, cache, named, rule)});
    }
  }
  if constexpr (!is_plan<Named>)
    if (out.width() == 0) look_at_bounds<Bounds>(of, named, table.rows());
  return of.finish(table, n, is_signed);
}

}  // namespace ferry::detail
