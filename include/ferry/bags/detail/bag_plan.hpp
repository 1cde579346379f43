// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/write_staged.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

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

/// The gradients of the weights of the positions, from the table before the step. `batch` is what
/// rows_named_by returns.
template <class Bounds, class Exec, class Access, class Batch, class Value, class ValueSpace, class Offset,
          class Out, class OutSpace>
void launch_weight_gradients(launch_context<Exec>& call, const Access& access, const Batch& batch,
                             const index_report* findings, const kernels::bag_list<Offset>& bags,
                             const array_ref<Value, ValueSpace>& grads, const array_ref<Out, OutSpace>& out) {
  using element = typename Access::value_type;
  using number = exact_number<Exec, pooling_type<element, std::remove_const_t<Value>, Out>>;
  require_direct_reach(call.verb(), call.exec(), out);
  call.writes_to(out);
  decltype(auto) table = access.rows(call);
  const auto source = rows_for_kernels<Bounds>(call, batch, access.table().rows());
  const auto& pooled = pooled_rows(table);
  const auto rows =
      pooling_operands_of(table, access.places(call, source, positions_of(batch), plan_of(batch)));
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

// The plan of a step on bags: the plan of its indices, and for each position where its gradient is.

/// A plan whose positions share the rows of `gradients`: as given, or divided by the sizes of the bags.
template <class Value, class Space>
struct bag_plan {
  row_plan plan;
  array_ref<Value, Space> gradients;
};

/// The values for kernels of the verb's execution space.
template <class Exec, class Value, class Space>
auto values_for_kernels(launch_context<Exec>& call, const std::string& label,
                        const array_ref<Value, Space>& values) {
  if constexpr (!is_host_exec<Exec> && std::is_same_v<Space, pageable_space>) {
    return values_on_device(call, label, values);
  } else {
    call.reads_from(values);
    return read_only(values);
  }
}

/// The position of each maximum, as the caller has it or found anew, into `target` (bags x width).
template <class Exec, class Access, class Bags, class Chosen>
void choose_positions(launch_context<Exec>& call, const Access& access, const row_plan& plan,
                      const Bags& bags, const Chosen& chosen,
                      const array_ref<std::int64_t, near_space<Exec>>& target) {
  if constexpr (std::is_same_v<Chosen, no_array>) {
    using number = pooling_type<typename Access::value_type, void, float>;
    const auto maxima = near_rows<number>(call, target.rows(), target.width(), "maxima");
    pool_bags<path::automatic, pooling::max, bounds::check>(call.exec(), access, plan, bags, target, maxima)
        .drop();
  } else {
    copy(call.exec(), chosen, target).drop();
  }
}

/// Makes the plan of a step on bags. `Compute` is the type in which gradients are divided. `extra` are the
/// weights of the positions or the positions of the maxima, `weight_grads` receives the weights' gradients.
/// `tables`: of bags of several tables, for kernels of `exec`.
template <class Pooling, class Bounds, class Compute, class Exec, class Access, class Bags, class Extra,
          class WeightGrads, class Value, class ValueSpace>
auto plan_bags(const Exec& exec, const Access& access, const row_plan& plan, const Bags& bags,
               [[maybe_unused]] const Extra& extra, [[maybe_unused]] const WeightGrads& weight_grads,
               const array_ref<Value, ValueSpace>& grads, const kernels::tables_of_bags& tables = {}) {
  constexpr bool weighs = !std::is_same_v<Extra, no_array> && !Pooling::selects;
  const auto verb_engine = engine::get(exec);
  launch_context<Exec> call(exec, "step_bags");
  call.refuse_capture("but a graph can't repeat where the bags of a step lie; use gather_bags there");
  const std::string& label = call.label("bags");
  call.use(plan.storage());
  const plan_storage& store = *plan.storage();
  const std::int64_t n = plan.positions(), count = grads.rows(), width = grads.width();
  const std::int64_t bag_count = count * tables.tables;

  std::size_t bytes = 0;  // of the arrays of the plan, in one block
  const auto take = [&bytes](std::int64_t elements, std::size_t element_bytes) {
    const std::size_t offset = bytes;
    bytes += (static_cast<std::size_t>(elements) * element_bytes + 127) / 128 * 128;
    return offset;
  };
  const auto rows = take(n, sizeof(std::int64_t));
  [[maybe_unused]] const auto factors = take(weighs ? n : 0, sizeof(double));
  [[maybe_unused]] const auto chosen = take(Pooling::selects ? count * width : 0, sizeof(std::int64_t));
  [[maybe_unused]] const auto scaled = take(Pooling::divides ? count * width : 0, sizeof(Compute));
  auto step_plan = std::allocate_shared<plan_storage>(node_allocator<plan_storage>(), store);
  step_plan->base = plan.storage();
  step_plan->values_description = grads.note();
  step_plan->memory = call.block(bytes);
  auto* const block = static_cast<std::byte*>(step_plan->memory.get());
  step_plan->values.rows = reinterpret_cast<std::int64_t*>(block + rows);
  if constexpr (weighs) step_plan->values.factors = reinterpret_cast<double*>(block + factors);
  if constexpr (Pooling::selects) {
    step_plan->values.chosen = reinterpret_cast<std::int64_t*>(block + chosen);
    step_plan->values.chosen_count = count * width;
  }
  step_plan->report = verb_engine->report();
  call.hold(step_plan->report);

  constexpr bool checks = !std::is_same_v<Bounds, bounds::unchecked>;
  step_plan->checked = store.checked || checks;
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const auto list = list_of_bags(bags, offsets, bag_count, n, checks, *step_plan->report);
  if (step_plan->checked)
    launch(
        exec, call.label_part(label, "check"), bag_count > 0 ? bag_count : 1,
        kernels::check_step_bags<offset_type<Bags>>{list, store.checked ? store.report->findings : nullptr});
  launch_shares<weighs>(call, label, store, list, tables, extra, nullptr, false, step_plan->values.rows,
                        step_plan->values.factors);
  if constexpr (Pooling::selects)
    choose_positions(
        call, access, plan, bags, extra,
        dense_rows<std::int64_t, near_space<Exec>>(step_plan->values.chosen, count, width, "positions"));
  const auto finish = [&](const auto& gradients) {
    if constexpr (!std::is_same_v<WeightGrads, no_array>) {
      launch_weight_gradients<Bounds>(call, access, plan,
                                      step_plan->checked ? step_plan->report->findings : nullptr, list,
                                      values_for_kernels(call, label, gradients), weight_grads);
    }
    ticket ended = call.finish();
    step_plan->completion = call.completion();
    step_plan->made_by = call.id();
    ended.drop();
    return bag_plan<const typename std::remove_cvref_t<decltype(gradients)>::value_type,
                    typename std::remove_cvref_t<decltype(gradients)>::memory_space>{
        row_plan(std::move(step_plan)), read_only(gradients)};
  };
  if constexpr (Pooling::divides) {
    auto divided = dense_rows<Compute, near_space<Exec>>(reinterpret_cast<Compute*>(block + scaled), count,
                                                         width, "divided gradients");
    divided.label = grads.label;
    const auto kernel_grads = values_for_kernels(call, label, grads);
    require_direct_reach("step_bags", exec, kernel_grads);
    using number = exact_number<Exec, Compute>;
    using kernel = kernels::divide_by_sizes<number, Compute, offset_type<Bags>, std::remove_const_t<Value>>;
    const bool skips = store.bounds == bounds::skip::name;
    const auto* const sizes = bag_row_counts(call, label, list, skips ? store.row_of : nullptr);
    launch(exec, call.label_part(label, "divide"), count * width,
           kernel{list, sizes, kernel_grads.data, kernel_grads.row_stride(), divided.data,
                  fast_divisor(width), tables});
    return finish(divided);
  } else {
    return finish(grads);
  }
}

}  // namespace ferry::detail
