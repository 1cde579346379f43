// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Computes the current rows of a table under step_count::catch_up, with all missed steps applied.
namespace ferry::kernels {

/// Row k of `out` = the row of item k with its missed steps applied, see row_weights. If `in_place`, out is
/// the table itself, and the state is written as well.
///
/// Device mapping: one thread per (item, tile), row-major. Host mapping: one iteration per item.
/// Operation: an update_row.
template <class Compute, class Tile, class Source, class Operation, class Out>
struct caught_up_rows {
  Source source;
  Operation operation;
  Out out;
  std::int64_t width;
  detail::fast_divisor tiles;
  bool in_place;

  /// Bytes of a host's item, without the steps that it missed.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(Operation::arrays * sizeof(Compute));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (Tile::partial) {
      const std::int64_t row = source.row(i, true);
      if (row < 0) return;
      for (std::int64_t column = 0; column < width; column += Tile::elements)
        one(i, row, column,
            static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
    } else {
      const std::int64_t item = tiles.quotient(i);
      const std::int64_t tile = i - item * tiles.divisor();
      const std::int64_t row = source.row(item, tile == 0);
      if (row >= 0) one(item, row, tile * Tile::elements, Tile::elements);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, std::int64_t row, std::int64_t column,
                                       int count) const {
    typename Operation::template held<Tile, Compute> tile;
    operation.load(tile, row, column, count);
    operation.catch_up(tile, row, count);
    out.template store<Tile>(tile.weight, source.position(item), column, count);
    if (in_place) operation.state.store(tile, row, column, count);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// A step under step_count::catch_up of which kernels take the missed steps alone.
template <class Rule, class T, class Space, class State>
using catch_up_job = update_job<array_ref<T, Space>, State, Rule,
                                step_policies<step_count::catch_up, rounding::nearest, nonfinite::keep>>;

template <class Exec, class Rule, class T, class Space, class State>
consteval void require_catch_up() {
  require_step_rule<Rule, typename State::rule_type>();
  static_assert(
      may_dereference<Exec, typename State::memory_space>() &&
          transform_spaces<Rule>::template reached_by<Exec>,
      "ferry: a host execution space can't dereference state or factors in device_space; pass an instance of the device's execution space.");
  using transforms = typename catch_up_job<Rule, T, Space, State>::template transforms_type<float>;
  static_assert(!RowOptimizer<optim::detail::rule_of<Rule>> && transforms::allows_catch_up,
                "ferry: this rule, or one of its transforms, can't be combined with step_count::catch_up.");
}

/// True if rows may have missed steps. Throws if the state counts by another policy.
template <class State, class Table>
bool may_be_behind(const char* verb, const State& state, const Table& table) {
  const auto& clock = *state.clock();
  if (clock.row_policy.empty()) return false;  // no step under catch_up yet
  if (clock.row_policy != step_count::catch_up::name)
    throw invalid_argument(joined("ferry::", verb, ": the rows of '", table.label, "' count their steps by ",
                                  clock.row_policy, ", so there is nothing to catch up with"));
  return true;
}

/// The arrays of a state for a catch_up_job. Throws if the state belongs to another table.
template <class State, class Table>
auto arrays_for_catch_up(const char* verb, State& state, const Table& table) {
  auto arrays = checked_arrays(verb, state, table);
  arrays.row_steps = make_ref(state.clock()->row_steps);
  require_made_for(verb, arrays.row_steps, table, 1);
  return arrays;
}

/// Launches caught_up_rows on the verb's execution space or the host's, in the type in which the steps were
/// computed. `in_place` updates the table, whose rows are `out`; otherwise the rows alone are written to
/// `out`.
template <class Rounding, int Fields = -1, class Exec, class On, class Job, class Source, class Out,
          class OutSpace>
void launch_caught_up(launch_context<Exec>& call, const On& space_exec, const std::string& label,
                      const Job& job, const Source& source, std::int64_t items,
                      const array_ref<Out, OutSpace>& out, bool in_place) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields)
      return launch_caught_up<Rounding, fields + 1>(call, space_exec, label, job, source, items, out,
                                                    in_place);
  // The last step did not name a row with missed steps, so its random bits for that row are unused.
  const kernels::step_randomness randomness{job.clock->seed, static_cast<std::uint64_t>(job.step - 1),
                                            job.clock->rows};
  const auto target = kernels::weights_rounded<Rounding::is_random>(out.data, out.row_stride(), randomness);
  const auto launch_in = [&]<class Compute, class Tile>(std::type_identity<Compute>, Tile) {
    const Job ready = job.template prepare<false>(call, label, array_ref<const Compute, OutSpace>{});
    const auto operation = ready.template operation<On, Compute, fields>();
    const std::int64_t width = job.table.width(), tiles = Tile::host ? 1 : width / Tile::elements;
    if (in_place) before_writing();
    launch(space_exec, label, items * tiles,
           kernels::caught_up_rows<exact_number<On, Compute>, Tile, Source,
                                   std::remove_const_t<decltype(operation)>,
                                   std::remove_const_t<decltype(target)>>{source, operation, target, width,
                                                                          fast_divisor(tiles), in_place});
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

}  // namespace ferry::detail
