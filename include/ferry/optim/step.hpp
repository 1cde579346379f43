// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/rows/detail/row_access.hpp>

#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The tables that a step changes: arrays and quantized tensors, and tables of other kinds.
template <class Table>
concept HasStepRows = !is_table_object<std::remove_cvref_t<Table>> ||
                      (std::is_lvalue_reference_v<Table> && HasOutputRows<Table>);

/// The addresser of records in a step.
template <class Records>
struct record_rows : plain_rows<typename decltype(std::declval<Records&>().table())::value_type,
                                typename Records::memory_space, decltype(std::declval<Records&>().table())> {
  record_rows(Records& records, const char*) : record_rows::plain_rows(records.table()) {}
  template <class Exec, class Chosen>
  static consteval void require() {}
};

/// The addresser and the state of a table of records, a cached one too.
template <class Records>
using records_access =
    typename std::conditional_t<is_table_object<Records>, std::type_identity<step_access<Records>>,
                                std::type_identity<record_rows<Records>>>::type;
template <class Records>
decltype(auto) state_in(Records& records) {
  if constexpr (is_table_object<Records>)
    return records.record_state();
  else
    return (records);
}

/// The policies of a step of all rows, which names each row once.
template <class... Policies>
using dense_step_policies = chosen_policies<Policies..., duplicates::assume_unique>;

/// Checks the types of a step of all rows. `Table` is an array type.
template <class Exec, class Table, class Grads, class... Policies>
consteval void require_dense_step() {
  using asked = chosen_policies<Policies...>;
  static_assert(
      !std::is_integral_v<std::remove_const_t<typename traits_of<Grads>::value_type>>,
      "ferry: a step of all rows takes gradients of float, double, half_t or bhalf_t; if these integers name rows, their gradients come next: step(exec, rule, table, state, indices, grads, policies...).");
  static_assert(!asked::template names<bounds_category>,
                "ferry: a step of all rows uses no indices, so it takes no bounds policy.");
  static_assert(!asked::template names<duplicates_category>,
                "ferry: a step of all rows names each row once, so it takes no duplicates policy.");
  require_row_verb<Exec, Table, row_plan, Grads, without_occupancy<asked>, true, true>();
}

/// Checks the policies of a step, and that it may write, for a kind of table.
template <class Access, class Exec, class Chosen>
consteval void require_step_table() {
  Access::require_writable();
  Access::template require<Exec, Chosen>();
}

}  // namespace detail

/// One optimizer step on the rows that the batch names: combines their gradients, then updates weights and
/// state in place, in one pass over the memory of a row: 2 (w + s) + g bytes. Extra kernels sum the gradients
/// of very frequent rows before the pass, check gradients before it, or count rows after it.
///
///   exec      the execution space instance that the work is enqueued on
///   rule      one of ferry::optim, with names, defaults and formulas of torch.optim or of the cited paper,
///             or optim::chain, a rule with transforms
///   table     rows x width of float, double, half_t or bhalf_t, or a quantized_tensor; any memory space. A
///             table of another kind, too: a cached_table, say
///   state     from make_state(rule, table), or for a table of the same extents
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   grads     one row per index, any number type
///   policies, each at most once
///             path        default path::automatic
///             bounds      default bounds::check; a plan has its own
///             duplicates  default duplicates::sum, as torch's coalesce
///             step_count  the step number of a row, and the treatment of missed steps; default global
///             rounding    of half_t, bhalf_t and quantized weights; default nearest
///             nonfinite   the treatment of infinite or NaN gradients; default keep
///             occupancy   the blocks of the kernel that updates rows; default full
///
/// Rows that the batch does not name keep weights and state. An empty batch counts as a step. The step is
/// computed in double if any operand is double, else in float, and every operation is rounded by itself.
/// Under path::staged the gradients travel through slots and the host updates a table in host memory.
///
/// Rows of a quantized_tensor are decoded, updated and encoded. A row that the step changes gets a new scale
/// for each of its blocks, that of its new numbers. The factor of a table, set_scale(x), stays: larger
/// numbers become the largest of the codes.
///
/// Asynchronous on a device, except path::staged and path::cooperative, which occupy the calling thread. The
/// step is counted at once; a wait() that throws takes it back. Where indices may be bad, wait for a step
/// before the next one. Throws invalid_argument for shapes or options that do not fit. ticket::wait() throws
/// out_of_range under bounds::check and invalid_argument under duplicates::reject and nonfinite::reject;
/// table and state are then unchanged.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Indices, class Grads,
          class... Policies>
  requires(
      detail::HasStepRows<Table>&& detail::Fits<detail::indexed_step_arguments, const Exec&, const Rule&,
                                                Table, State&, const Indices&, const Grads&, Policies...>)
[[nodiscard]] ticket step(const Exec& exec, const Rule& rule, Table&& table, State& state,
                          const Indices& indices, const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::step_access<Table>;
  detail::require_step_rule<Rule, typename State::rule_type>();
  detail::require_row_verb<Exec, typename access_type::checked, Indices, Grads,
                           detail::without_occupancy<chosen>, true, true>();
  detail::require_step_table<access_type, Exec, chosen>();
  const access_type access(table, "step");
  const auto& batch = detail::rows_named_by(indices);
  const auto values = detail::read_only(make_ref(grads));
  using table_type = std::remove_reference_t<decltype(access.table())>;
  if constexpr (access_type::is_strided && detail::is_prebuilt_step<chosen, Exec, Rule, table_type, State,
                                                                    decltype(batch), decltype(values)>)
    return detail::prebuilt_step(exec, rule, access.table(), state, batch, values);
  else
    return detail::step_rows<chosen>(exec, rule, access, state, batch, values);
}

/// One optimizer step on records, which hold weights and state of a row in one record, or on a cached_table
/// of them. Otherwise as step on a table.
template <class Exec, class Rule, class Records, class Indices, class Grads, class... Policies>
  requires(
      detail::is_records<Records>&& detail::Fits<detail::indexed_step_arguments, const Exec&, const Rule&,
                                                 Records&, const Indices&, const Grads&, Policies...>)
[[nodiscard]] ticket step(const Exec& exec, const Rule& rule, Records& records, const Indices& indices,
                          const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::records_access<Records>;
  auto&& state = detail::state_in(records);
  detail::require_step_rule<Rule, typename std::remove_reference_t<decltype(state)>::rule_type>();
  detail::require_row_verb<Exec, typename access_type::checked, Indices, Grads,
                           detail::without_occupancy<chosen>, true, true>();
  detail::require_step_table<access_type, Exec, chosen>();
  return detail::step_rows<chosen>(exec, rule, access_type(records, "step"), state,
                                   detail::rows_named_by(indices), detail::read_only(make_ref(grads)));
}

/// One optimizer step on all rows of a table: that of dense parameters. Nothing is indexed, sorted or summed,
/// so it moves 2 (w + s) + g bytes per row at the rate of a copy.
///
///   grads     a row for each row of the table, in its order; float, double, half_t or bhalf_t
///   policies  path, step_count, rounding and nonfinite as in step with indices. Rows are visited in their
///             order, so path::ordered is path::direct
///
/// Bits, counting, ordering and errors are those of step with the indices 0, 1, 2, ... A table may have steps
/// of both kinds. Throws invalid_argument unless the extents are those of the table.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Grads, class... Policies>
  requires(detail::HasStepRows<Table>&& detail::Fits<detail::dense_step_arguments, const Exec&, const Rule&,
                                                     Table, State&, const Grads&, Policies...>)
[[nodiscard]] ticket step(const Exec& exec, const Rule& rule, Table&& table, State& state, const Grads& grads,
                          Policies...) {
  using chosen = detail::dense_step_policies<Policies...>;
  using access_type = detail::step_access<Table>;
  detail::require_step_rule<Rule, typename State::rule_type>();
  detail::require_dense_step<Exec, typename access_type::checked, Grads, Policies...>();
  detail::require_step_table<access_type, Exec, chosen>();
  const access_type access(table, "step");
  return detail::step_rows<chosen>(exec, rule, access, state, detail::every_row{access.table().rows()},
                                   detail::read_only(make_ref(grads)));
}

/// As above, on records.
template <class Exec, class Rule, class Records, class Grads, class... Policies>
  requires(detail::is_records<Records>&& detail::Fits<detail::dense_step_arguments, const Exec&, const Rule&,
                                                      Records&, const Grads&, Policies...>)
[[nodiscard]] ticket step(const Exec& exec, const Rule& rule, Records& records, const Grads& grads,
                          Policies...) {
  using chosen = detail::dense_step_policies<Policies...>;
  using access_type = detail::records_access<Records>;
  auto&& state = detail::state_in(records);
  detail::require_step_rule<Rule, typename std::remove_reference_t<decltype(state)>::rule_type>();
  detail::require_dense_step<Exec, typename access_type::checked, Grads, Policies...>();
  detail::require_step_table<access_type, Exec, chosen>();
  const access_type access(records, "step");
  return detail::step_rows<chosen>(exec, rule, access, state, detail::every_row{access.table().rows()},
                                   detail::read_only(make_ref(grads)));
}

}  // namespace ferry
