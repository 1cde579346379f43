// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Computes the current rows of a table under step_count::catch_up, with all missed steps applied.
namespace ferry::kernels {

/// Row k of `out` = the row of item k with its missed steps applied, see row_weights. Source: `identity` for
/// all rows of the table, which is `out` then, and whose state is written as well.
///
/// Device mapping: one thread per (item, tile), row-major. Host mapping: one iteration per item.
/// Operation: an update_row.
template <class Compute, class Tile, class Source, class Operation, class Out>
struct caught_up_rows {
  static constexpr bool updates_table = std::is_same_v<Source, identity>;

  Source source;
  Operation operation;
  Out out;
  std::int64_t width;
  detail::fast_divisor tiles;

  /// Bytes of a host's item, without the steps that it missed.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(Operation::arrays * sizeof(Compute));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = tiles.quotient(i);
    const std::int64_t first = (i - item * tiles.divisor()) * Tile::elements;
    const std::int64_t end = Tile::partial ? width : first + Tile::elements;
    const std::int64_t row = source.row(item, first == 0);
    if (row < 0) return;
    for (std::int64_t column = first; column < end; column += Tile::elements) {
      const int count = static_cast<int>(end - column < Tile::elements ? end - column : Tile::elements);
      typename Operation::template held<Tile, Compute> tile;
      operation.load(tile, row, column, count);
      operation.catch_up(tile, row, count);
      out.template store<Tile>(tile.weight, source.position(item), column, count);
      if constexpr (updates_table) operation.state.store(tile, row, column, count);
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Launches caught_up_rows on the verb's execution space or the host's, in the type in which the steps were
/// computed.
template <class Rounding, int Fields = -1, class On, class Job, class Source, class Out>
void launch_caught_up(auto& call, const On& exec, const Job& job, const Source& source, const Out& out) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields) return launch_caught_up<Rounding, fields + 1>(call, exec, job, source, out);
  constexpr bool updates_table = std::is_same_v<Source, kernels::identity>;
  const std::string label = updates_table ? "ferry::catch_up" : "ferry::gather::caught_up";
  // The last step did not name a row with missed steps, so its random bits for that row are unused.
  const kernels::step_randomness randomness{job.clock->seed, static_cast<std::uint64_t>(job.step - 1),
                                            job.clock->rows};
  const auto target = kernels::weights_rounded<Rounding::is_random>(out.data, out.row_stride(), randomness);
  const auto launch_in = [&]<class Compute, class Tile>(std::type_identity<Compute>, Tile) {
    const Job ready =
        job.template prepare<false>(call, label, array_ref<const Compute, typename Out::memory_space>{});
    const auto operation = ready.template operation<On, Compute, fields>();
    const std::int64_t width = job.table.width(), tiles = Tile::host ? 1 : width / Tile::elements;
    using kernel = kernels::caught_up_rows<exact_number<On, Compute>, Tile, Source,
                                           std::remove_const_t<decltype(operation)>,
                                           std::remove_const_t<decltype(target)>>;
    if constexpr (updates_table) before_writing();
    launch(exec, label, out.rows() * tiles, kernel{source, operation, target, width, fast_divisor(tiles)});
  };
  const auto launch_tiles = [&](auto compute) {
    if constexpr (is_host_exec<On>)
      launch_in(compute, kernels::host_tile{});
    else if (job.template packs<void>(out))
      launch_in(compute, kernels::packed_tile{});
    else
      launch_in(compute, kernels::single_tile{});
  };
  if constexpr (std::is_same_v<typename Job::template compute_type<float>, float>)
    if (!job.clock->updates.is_in_double()) return launch_tiles(std::type_identity<float>{});
  launch_tiles(std::type_identity<double>{});
}

template <class Chosen, class Exec, class Rule, class T, class Space, class State>
ticket catch_up_rows(const Exec& exec, const Rule& optimizer, const array_ref<T, Space>& table,
                     State& state) {
  using state_space = typename State::memory_space;
  using rounding_policy = typename Chosen::template get<rounding_category, rounding::nearest>;
  require_catch_up<Exec, Rule, T, Space, State>();
  require_policies<Chosen, false, false, true>();
  static_assert(!(Chosen::template names<path_category> || Chosen::template names<step_count_category> ||
                  Chosen::template names<nonfinite_category>),
                "ferry: catch_up takes no policy but rounding::nearest or rounding::stochastic.");
  static_assert(
      !rounding_policy::is_random || !std::is_floating_point_v<T>,
      "ferry: rounding::stochastic is for tables of half_t or bhalf_t; weights of float and double are not rounded to a narrower format.");
  require_dense_rows("catch_up", table);
  const auto arrays = arrays_for_catch_up("catch_up", optimizer, state, table);
  launch_context<Exec> call(exec, "catch_up");
  if (!arrays) return call.finish();
  call.refuse_capture("but catching up ends a history on the host; do it before the capture");
  auto& clock = *state.clock();
  const catch_up_job<Rule, T, Space, State> job{table,     *arrays,         state.fields(),
                                                optimizer, clock.steps + 1, state.clock()};
  const std::string label = "ferry::catch_up";
  const auto catch_up_on = [&](const auto& kernel_exec) {
    if (table.width() != 0)
      launch_caught_up<rounding_policy>(call, kernel_exec, job, kernels::identity{}, table);
    launch_fill(kernel_exec, call.label("count"),
                fill_target<std::uint32_t>{clock.row_steps.data(), table.rows(), 1, 1},
                kernels::constant_value<std::uint32_t>{static_cast<std::uint32_t>(clock.steps)});
  };
  bool on_exec = true;
  if constexpr (!is_host_exec<Exec> &&
                (is_any_of<pageable_space, Space, state_space> || transform_spaces<Rule>::any_pageable))
    on_exec = execution_backend<Exec>::reaches_pageable(exec);
  if (table.rows() == 0) {
    // A shard without rows ends its history as the others do.
  } else if (on_exec) {
    job.for_each_array([&](const auto& array) { call.touches(array); });
    catch_up_on(exec);
  } else if constexpr (Space::is_host_accessible && state_space::is_host_accessible &&
                       transform_spaces<Rule>::on_host) {
    wait_for_host_access(call, label, table);
    job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
    const auto host = host_side(exec);
    catch_up_on(host);
    host.fence(label);
  } else {
    throw invalid_argument(
        joined("ferry::catch_up: neither device nor host reach both ", table.describe(), " and its state"));
  }
  if constexpr (is_host_exec<Exec>) execution_backend<Exec>::fence(exec, label);
  clock.updates.begin_at(clock.steps + 1);
  return call.finish();
}

template <class Exec, class Rule, class Table, class State, class Indices, class Out, class... Policies>
ticket gather_current_rows(const Exec& exec, const Rule& optimizer, const Table& table, State& state,
                           const Indices& indices, Out&& output, Policies... policies) {
  using chosen = chosen_policies<Policies...>;
  require_row_verb<Exec, Table, Indices, Out, chosen, false>();
  require_output<Out>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  static_assert(
      path_policy::chosen_at_run_time || in_batch_order<path_policy>,
      "ferry: a gather that catches up computes the rows where the kernels run: path::direct alone.");
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto rows = make_ref(table);
  const auto out = make_ref(output);
  using value = typename decltype(rows)::value_type;
  using space = typename decltype(rows)::memory_space;
  require_catch_up<Exec, Rule, value, space, State>();
  static_assert(NumberElement<typename decltype(out)::value_type>,
                "ferry: a gather that catches up gives numbers.");
  const auto arrays = arrays_for_catch_up("gather", optimizer, state, rows);
  if (!arrays) return gather(exec, table, indices, output, policies...);
  const auto& batch = rows_named_by(indices);
  require_batch<Exec, chosen>("gather", rows, batch, out);

  launch_context<Exec> call(exec, "gather");
  call.refuse_capture(counts_each_step);
  const catch_up_job<Rule, value, space, State> job{
      rows, *arrays, state.fields(), optimizer, state.clock()->steps + 1, state.clock()};
  require_direct_reach("gather", exec, out);
  call.writes_to(out);
  job.for_each_array([&](const auto& array) {
    require_direct_reach("gather", exec, array);
    call.reads_from(array);
  });
  if constexpr (is_plan<Indices>) call.use(batch.storage());
  if (out.size() != 0)
    launch_caught_up<rounding::nearest>(call, exec, job,
                                        rows_for_kernels<bounds_policy>(call, batch, rows.rows()), out);
  else if constexpr (!is_plan<Indices>)
    look_at_bounds<bounds_policy>(call, batch, rows.rows());
  return call.finish(rows, positions_of(batch), has_signed_indices(batch));
}

}  // namespace ferry::detail

namespace ferry {

/// Under step_count::catch_up: applies to every row of the table the steps that it missed. Table and state
/// are then the result of dense training.
///
///   exec      the execution space instance that the work is enqueued on
///   rule      the rule of the steps, with its transforms
///   table     the table of the steps; any memory space
///   state     the state of the steps
///   policies  rounding  as in step; default nearest
///
/// Call it before saving table and state, and before code other than the gather below reads them. It drops
/// the coefficient history of the steps so far and frees its memory. If it is called often, rounding::nearest
/// loses changes below half a unit roundoff of half_t and bhalf_t. The work is enqueued on `exec`;
/// if `exec` can't reach the memory, the host does it before the call returns. Throws invalid_argument for
/// arguments that do not fit.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class... Policies>
  requires(!detail::is_table_object<std::remove_cvref_t<Table>> &&
           detail::Fits<detail::catch_up_arguments, const Exec&, const Rule&, Table, State&, Policies...>)
[[nodiscard]] ticket catch_up(const Exec& exec, const Rule& rule, Table&& table, State& state, Policies...) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Table>();
  detail::require_output<Table>();
  detail::require_reach<Exec, Table>();
  return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, make_ref(table), state);
}
/// catch_up for records, which hold weights and state of a row in one record.
template <class Exec, class Rule, class Records, class... Policies>
  requires(detail::is_records<Records> && !detail::is_table_object<Records> &&
           detail::Fits<detail::catch_up_arguments, const Exec&, const Rule&, Records&, Policies...>)
[[nodiscard]] ticket catch_up(const Exec& exec, const Rule& rule, Records& records, Policies...) {
  detail::require_execution_space<Exec>();
  return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, records.table(), records);
}

/// Under step_count::catch_up: out[p] = row indices[p] of the table with all missed steps applied. A model
/// must compute with these rows.
///
///   exec      the execution space instance that the work is enqueued on
///   rule      the rule of the steps, with its transforms
///   table     the table of the steps; any memory space that `exec` reaches
///   state     the state of the steps
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out       one row per index; must not overlap the table
///   policies  path    path::direct, also by default
///             bounds  default bounds::check; a plan has its own
///
/// Table and state stay unchanged: a row's next step applies the missed steps for good. Ordering, lifetimes
/// and errors are those of gather for any table.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Indices, class Out,
          class... Policies>
  requires(!detail::is_table_object<std::remove_cvref_t<Table>> &&
           detail::Fits<detail::gather_arguments, const Exec&, const Rule&, const Table&, State&,
                        const Indices&, Out, Policies...>)
[[nodiscard]] ticket gather(const Exec& exec, const Rule& rule, const Table& table, State& state,
                            const Indices& indices, Out&& out, Policies... policies) {
  return detail::gather_current_rows(exec, rule, table, state, indices, out, policies...);
}
/// gather for records, which hold weights and state of a row in one record.
template <class Exec, class Rule, class Records, class Indices, class Out, class... Policies>
  requires(detail::is_records<Records> && !detail::is_table_object<Records> &&
           detail::Fits<detail::gather_arguments, const Exec&, const Rule&, Records&, const Indices&, Out,
                        Policies...>)
[[nodiscard]] ticket gather(const Exec& exec, const Rule& rule, Records& records, const Indices& indices,
                            Out&& out, Policies... policies) {
  return detail::gather_current_rows(exec, rule, records.table(), records, indices, out, policies...);
}

}  // namespace ferry
