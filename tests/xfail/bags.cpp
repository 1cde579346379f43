// SPDX-License-Identifier: Apache-2.0
// Bags and many tables. See xfail.py.
#include "arrays.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/quantized.hpp>

#include <span>
#include <utility>

// ---- bag_grads_of_indices: The rows of a batch are sorted by its plan.
// expected-first-error: bag_grads is called as bag_grads\(plan, offsets, pooled_grads, pooling
void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::tensor<float, ferry::mapped_space>& pooled) {
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  // legal: const auto plan = ferry::make_plan(exec, indices, 10);
  // legal: static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::bag_grads(plan, offsets, pooled)));
  static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::bag_grads(indices, offsets, pooled)));
}

// ---- bag_grads_of_temporary: The work reads the gradients later.
// expected-error: bag_grads refers to gradients, so they can't be a temporary array
namespace optim = ferry::optim;
const ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
const auto plan = ferry::make_plan(exec, indices, 10);
// legal: static_cast<void>(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled)).wait());
static_cast<void>(optim::grad_norm(exec, optim::bag_grads(plan, offsets,
                                                          ferry::tensor<float, ferry::device_space>("pooled",
                                                                                                    2, 4)))
                      .wait());

// ---- bag_grads_with_temporary_offsets: The work reads the offsets later.
// expected-error: a reference to the array is kept, so it can't be a temporary
namespace optim = ferry::optim;
const ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
const auto plan = ferry::make_plan(exec, indices, 10);
// legal: static_cast<void>(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled)).wait());
static_cast<void>(
    optim::grad_norm(exec, optim::bag_grads(plan, std::vector<std::int64_t>{0, 1}, pooled)).wait());

// ---- bag_grads_without_maxima: Gradients of maxima need their positions.
// expected-error: under pooling::max the gradient of a column goes to the position of its maximum
namespace optim = ferry::optim;
const ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
const auto plan = ferry::make_plan(exec, indices, 10);
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(
    optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})).wait());
#else
static_cast<void>(
    optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, ferry::pooling::max{})).wait());
#endif

// ---- bags_by_float_offsets: Offsets are places.
// expected-error: the offsets of bags must be a rank-1 array of int32
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled).wait();
ferry::gather_bags(exec, table, indices, std::vector<float>{0, 2, 3}, pooled).wait();

// ---- bags_of_8_bit_floats: Numbers of 8 bits are not pooled.
// expected-error: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers
ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
// legal: ferry::gather_bags(exec, table, indices, offsets, batch).wait();
ferry::gather_bags(exec, codes, indices, offsets, batch).wait();

// ---- bags_of_struct_weights: Weights multiply.
// expected-error: the weights of positions must be numbers
struct pair {
  float first, second;
};
const std::vector<float> weights{1, 2, 3};
const std::vector<pair> pairs(3);
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled, weights, ferry::pooling::sum{}).wait();
ferry::gather_bags(exec, table, indices, offsets, pooled, pairs, ferry::pooling::sum{}).wait();

// ---- bags_of_structs: Structs can't be added.
// expected-error: bags of rows are pooled by arithmetic
struct pair {
  float first, second;
};
const ferry::tensor<pair, ferry::device_space> pairs("pairs", 10, 4);
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled).wait();
ferry::gather_bags(exec, pairs, indices, offsets, pooled).wait();

// ---- bags_of_two_poolings: A bag is pooled in one way.
// expected-error: at most one pooling policy may be given
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}).wait();
ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}, ferry::pooling::max{})
    .wait();

// ---- bags_of_weighted_maxima: A maximum has no weights.
// expected-error: pooling::max takes no weights; the further array receives the positions
std::vector<float> weights{1, 2, 3};
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled, weights, ferry::pooling::sum{}).wait();
ferry::gather_bags(exec, table, indices, offsets, pooled, weights, ferry::pooling::max{}).wait();

// ---- bags_ordered: Rows in the order of the table are not in the order of a bag.
// expected-error: gather_bags adds rows in the order of their positions
// legal: ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::path::direct{}).wait();
ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::path::ordered{}).wait();

// ---- for_each_table_of_numbers: They have no rows.
// expected-errors: 3 for_each_table takes tables of one element type in one memory space
[[maybe_unused]] ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::for_each_table(table));
#else
static_cast<void>(ferry::for_each_table());
static_cast<void>(ferry::for_each_table(1, 2));
static_cast<void>(ferry::for_each_table(codes));
#endif

// ---- gather_bags_of_range: Several tables come in a list.
// expected-errors: 3 a range of tables is no table: gather_bags, step_bags and copy_rows take one as for_each_table
using table_type = ferry::tensor<float, ferry::mapped_space>;
using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space>;
std::vector<table_type> tables(2);
[[maybe_unused]] std::vector<quantized> codes;
std::vector<decltype(ferry::optim::make_state(rule, tables[0]))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::gather_bags(exec, ferry::for_each_table(tables), indices, offsets, pooled).wait();
ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, indices, offsets, pooled).wait();
#else
ferry::gather_bags(exec, tables, indices, offsets, pooled).wait();
ferry::gather_bags(exec, codes, indices, offsets, pooled).wait();
ferry::step_bags(exec, rule, tables, states, indices, offsets, pooled).wait();
#endif

// ---- gather_over_tables: Verbs on rows take one table.
// expected-error: the tables of for_each_table serve gather_bags, step_bags and copy_rows alone
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, ferry::for_each_table(table, second), indices, batch).wait();

// ---- gather_with_pooling: A gather pools nothing.
// expected-error: the trailing arguments must be policies
// legal: ferry::gather(exec, table, offsets, batch).wait();
ferry::gather(exec, table, offsets, batch, ferry::pooling::sum{}).wait();

// ---- step_bags_into_integers: Gradients are fractions.
// expected-error: the gradients of the weights must be floating-point numbers
const std::vector<float> weights{1, 2, 3};
ferry::tensor<float, ferry::device_space> gradients("gradients", 3);
ferry::tensor<std::int32_t, ferry::device_space> numbers("numbers", 3);
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, gradients,
                 ferry::pooling::sum{})
    .wait();
#else
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, numbers, ferry::pooling::sum{})
    .wait();
#endif

// ---- step_bags_of_maxima_and_weights: Without weights there are no gradients of weights.
// expected-error: so there are no gradients of weights
ferry::tensor<std::int32_t, ferry::device_space> maxima("maxima", 2, 4);
ferry::tensor<float, ferry::device_space> weights("weights", 3);
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, maxima, ferry::pooling::max{}).wait();
#else
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, maxima, weights, ferry::pooling::max{})
    .wait();
#endif

// ---- step_bags_of_weighted_maxima: A maximum has no weights.
// expected-error: the further array has the positions of the maxima
ferry::tensor<std::int32_t, ferry::device_space> maxima("maxima", 2, 4);
const std::vector<float> weights{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, maxima, ferry::pooling::max{}).wait();
#else
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, ferry::pooling::max{}).wait();
#endif

// ---- step_bags_over_tables: Each table has a state of its own.
// expected-error: step_bags over for_each_table takes a range of states
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states.front(), indices, offsets, batch)
    .wait();
#endif

// ---- step_bags_with_duplicates: The gradients of a row are added.
// expected-error: step_bags adds the gradients of all positions of a row
// legal: ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, ferry::pooling::sum{}).wait();
ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, ferry::duplicates::last{}).wait();

// ---- step_tables_by_plan: A plan knows the rows of one table.
// expected-error: give step_bags on several tables the indices
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
const auto plan = ferry::make_plan(exec, indices, 9);
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, plan, offsets, batch).wait();
#endif

// ---- step_tables_of_const: The step writes to all of them.
// expected-error: none of them may be const
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
const auto& fixed = second;
ferry::step_bags(exec, rule, ferry::for_each_table(table, fixed), states, indices, offsets, batch).wait();
#endif

// ---- step_tables_of_const_states: The step counts in the states.
// expected-error: step_bags writes to the states of the tables of for_each_table, so none of them may be const
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
using state = decltype(ferry::optim::make_state(rule, table));
std::vector<state> states;
// legal: std::span<state> range(states);
std::span<const state> range(states);
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), range, indices, offsets, batch).wait();

// ---- step_tables_of_maxima: The positions of the maxima of all tables are in no one array.
// expected-error: step_bags on several tables takes pooling::sum and pooling::mean
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch,
                 ferry::pooling::max{})
    .wait();
#endif

// ---- step_tables_of_temporary_states: The step counts in the states.
// expected-error: their range must be a variable that is not const
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), std::move(states), indices, offsets, batch)
    .wait();
#endif

// ---- step_tables_staged: The host has no part in one launch.
// expected-error: step_bags on several tables is one launch of the execution space
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch,
                 ferry::path::staged{})
    .wait();
#endif

// ---- step_tables_with_weight_gradients: The gradients of weights are those of one table.
// expected-error: step_bags on several tables writes no gradients of weights
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
const std::vector<float> weights{1, 2, 3};
std::vector<float> weight_grads{0, 0, 0};
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch, weights,
                 weight_grads)
    .wait();
#endif

// ---- tables_by_plan: A plan knows the rows of one table.
// expected-error: a plan is for tables of one number of rows
const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
// legal: ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
ferry::gather_bags(exec, ferry::for_each_table(table, second), ferry::make_plan(exec, indices, 9), offsets,
                   pooled)
    .wait();

// ---- tables_of_temporary: The list would refer to a table that was freed, of a range as of single tables.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
using table = ferry::tensor<float, ferry::mapped_space>;
// legal: std::vector<table> tables;
// legal: static_cast<void>(ferry::for_each_table(std::span(tables)));
static_cast<void>(ferry::for_each_table(std::vector<table>()));

// ---- tables_of_two_types: One kernel reads all tables.
// expected-error: for_each_table takes tables of one element type
const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
const ferry::tensor<double, ferry::mapped_space> wide("wide", 9, 4);
// legal: ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
ferry::gather_bags(exec, ferry::for_each_table(table, wide), indices, offsets, pooled).wait();

// ---- tables_of_weighted_maxima: A maximum has no weights.
// expected-error: pooling::max takes no weights
const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
const std::vector<float> weights{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled, weights).wait();
#else
ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled, weights,
                   ferry::pooling::max{})
    .wait();
#endif

// ---- tables_staged: The host has no part in one launch.
// expected-error: gather_bags on several tables is one launch of the execution space
const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
// legal: ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled,
                   ferry::path::staged{})
    .wait();
