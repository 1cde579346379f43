// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// out[p] = gradient of the bag of position p times row of position p, summed over the columns in the order
/// of row_sum_order; 0 for positions without a row, of which `source` has -1. Nothing is written if the
/// batch was found faulty.
///
/// Device mapping, by teams: the vector lanes of one thread share a position, one lane per packet, up to a
/// warp. Host mapping: one iteration per position.
template <class Compute, class Tile, class Table, class Source, class Offset, class Value, class Out>
struct dot_rows {
  Table table;
  Source source;
  bag_list<Offset> bags;
  const ferry::detail::index_report* findings;
  const Value* values;
  std::int64_t stride;
  std::int64_t width;
  Out* out;

  static constexpr bool takes_teams = true;  ///< on a device, see schedule
  [[nodiscard]] int lanes() const { return lanes_for(width); }
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(sizeof(Value) + sizeof(Compute)) +
           static_cast<std::int64_t>(sizeof(std::int64_t) + sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    if (findings == nullptr || findings->out_of_range == 0) dot(position, thread_walk<Compute, Tile>{width});
  }
  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if (findings != nullptr && findings->out_of_range != 0) return;
    const std::int64_t step = static_cast<std::int64_t>(team.league_size()) * team.team_size();
    for (std::int64_t position = team.league_rank() * team.team_size() + team.team_rank();
         position < bags.positions; position += step)
      dot(position, lane_walk<Compute, Tile, Member>(team, width));
  }

 private:
  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void dot(std::int64_t position, const Walk& walk) const {
    const std::int64_t row = source.row(position, false);
    Compute sum(0);
    if (row >= 0) {
      const Value* gradient = values + bags.bag_of(position) * stride;
      const auto weights = table.row(row, width);
      const auto total =
          walk.template sums<1>([&](std::int64_t column, int count, Compute(&part)[1][Tile::elements]) {
            Compute left[Tile::elements];
            load_tile<Tile>(left, gradient + column, count);
            weights.template load<Tile>(part[0], column, count);
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] *= left[e];
          });
      sum = total.value[0];
    }
    walk.perform([&] { out[position] = convert<Out>(sum); });
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The gradients of the weights of the positions, from the table before the step. `named` is what
/// rows_named_by returns.
template <class Bounds, class Exec, class Access, class Named, class Value, class ValueSpace, class Offset,
          class Out, class OutSpace>
void launch_weight_gradients(launch_context<Exec>& call, const Access& access, const Named& named,
                             const index_report* findings, const kernels::bag_list<Offset>& bags,
                             const array_ref<Value, ValueSpace>& grads, const array_ref<Out, OutSpace>& out) {
  using element = typename Access::value_type;
  using number = pooling_number<Exec, pooling_type<element, std::remove_const_t<Value>, Out>>;
  require_direct_reach(call.verb(), call.exec(), out);
  call.writes_to(out);
  decltype(auto) table = access.rows(call);
  const auto source = rows_for_kernels<Bounds>(call, named, access.table().rows());
  const auto& pooled = pooled_rows(table);
  const auto rows =
      pooling_operands_of(table, access.places(call, source, positions_of(named), plan_of(named)));
  const auto launch_in = [&](auto tile) {
    using kernel = kernels::dot_rows<number, decltype(tile), decltype(rows.table), decltype(rows.source),
                                     Offset, std::remove_const_t<Value>, Out>;
    launch(call.exec(), call.label("weight_gradients"), schedule::flat{}, bags.positions, 1,
           kernel{rows.table, rows.source, bags, findings, grads.data, grads.row_stride(), grads.width(),
                  out.data});
  };
  if constexpr (is_host_exec<Exec>) {
    launch_in(kernels::host_tile{});
  } else {
    if (in_packets<kernels::packed_tile::elements>(pooled, grads))
      launch_in(kernels::packed_tile{});
    else
      launch_in(kernels::single_tile{});
  }
}

}  // namespace ferry::detail
