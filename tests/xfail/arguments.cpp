// SPDX-License-Identifier: Apache-2.0
// Arguments that verbs have in common. See xfail.py.
#include "arrays.hpp"

#include <Kokkos_DualView.hpp>
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/int8.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

// ---- batch_of_dual_view: Which of the two views is meant?
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\).*one of its two views
#ifdef FERRY_XFAIL_FIXED
const Kokkos::View<float**, Kokkos::LayoutRight> rows("rows", 2, 4);
ferry::gather(exec, table, indices, rows).wait();
#else
Kokkos::DualView<float**, Kokkos::LayoutRight> rows("rows", 2, 4);
ferry::gather(exec, table, indices, rows).wait();
#endif

// ---- batch_of_strings: Strings own their characters, vectors their elements.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
std::vector<std::string> names(2);
// legal: ferry::scatter(exec, table, indices, batch).wait();
ferry::scatter(exec, table, indices, std::span<std::string>(names)).wait();
// or: static_cast<void>(ferry::gather<ferry::pinned_space>(exec, names, indices));
// or: ferry::init::zeros(exec, names);

// ---- column_major_table: The rows of a LayoutLeft view are no rows in memory.
// expected-error: verbs that work on rows take row-major arrays only; give the Kokkos::View LayoutRight, .*
// or use ferry::copy
using left [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutLeft>;
using right [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutRight>;
// legal: ferry::gather(exec, right("view", 10, 4), indices, batch).wait();
ferry::gather(exec, left("view", 10, 4), indices, batch).wait();

// ---- execution_space_second: It comes first, in every verb.
// expected-errors: 7 the instance of the execution space comes first
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, indices, batch).wait();
ferry::gather_unique(exec, table, indices, batch).wait();
ferry::scatter(exec, table, indices, batch).wait();
ferry::step(exec, rule, table, state, indices, batch).wait();
ferry::gather_bags(exec, table, indices, offsets, batch).wait();
ferry::copy(exec, batch, batch).wait();
ferry::init::uniform(exec, table, -1.0, 1.0, 7);
#else
ferry::gather(table, exec, indices, batch).wait();
ferry::gather_unique(table, exec, indices, batch).wait();
ferry::scatter(table, indices, batch, exec).wait();
ferry::step(rule, exec, table, state, indices, batch).wait();
ferry::gather_bags(table, exec, indices, offsets, batch).wait();
ferry::copy(table, table, exec).wait();
ferry::init::uniform(table, exec, -1.0, 1.0, 7);
#endif

// ---- indices_in_braces: A braced list has no type.
// expected-errors: 5 write std::array\{1, 2, 3\} in place of \{1, 2, 3\}
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, std::array{1, 2}, batch).wait();
ferry::scatter(exec, table, std::array{1, 2}, batch).wait();
ferry::scatter_add(exec, table, std::array{1, 2}, batch).wait();
ferry::step(exec, rule, table, state, std::array{1, 2}, batch).wait();
const auto plan = ferry::make_plan(exec, std::array{1, 2}, 10);
#else
ferry::gather(exec, table, {1, 2}, batch).wait();
ferry::scatter(exec, table, {1, 2}, batch).wait();
ferry::scatter_add(exec, table, {1, 2}, batch).wait();
ferry::step(exec, rule, table, state, {1, 2}, batch).wait();
const auto plan = ferry::make_plan(exec, {1, 2}, 10);
#endif

// ---- indices_of_float: Rows are counted.
// expected-errors: 1 the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64
const std::vector<float> places{1, 2};
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, table, places, batch).wait();
// or: ferry::scatter(exec, table, std::vector<std::int16_t>{1, 2}, batch).wait();
// or: static_cast<void>(ferry::make_plan(exec, 1, 10));

// ---- indices_of_raw_pointer: A pointer does not say how many.
// expected-errors: 1 the indices must be a row_plan, or a rank-1 array .* give ferry::tensor_view\(pointer, count\)
// legal: ferry::scatter(exec, table, ferry::tensor_view(indices.data(), 2), batch).wait();
ferry::scatter(exec, table, indices.data(), batch).wait();

// ---- number_as_policy: Policies are types; there is none of int.
// expected-error: the trailing arguments must be policies: path::\*, bounds::\*, duplicates::\*, for a
// step also step_count::\*, rounding::\*, nonfinite::\*, or a policies<\.\.\.> bundle of them
// legal: ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::gather(exec, table, indices, batch, 1).wait();
// or: ferry::gather(exec, table, indices, batch, ferry::policies<ferry::bounds::clamp, int>{}).wait();

// ---- occupancy_of_plan: Its kernels take the whole device.
// expected-error: occupancy::\* limits gather, scatter, scatter_add, step, copy_rows and resolve; the kernels of
// this verb take the whole device
// legal: static_cast<void>(ferry::make_plan(exec, indices, 10));
static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::occupancy::blocks<2>{}));

// ---- two_occupancies: Which one holds?
// expected-error: at most one occupancy policy may be given
// legal: ferry::gather(exec, table, indices, batch, ferry::occupancy::blocks<2>{}).wait();
ferry::gather(exec, table, indices, batch, ferry::occupancy::blocks<2>{}, ferry::occupancy::full{}).wait();

// ---- plan_in_temporary: The plan would lie in a workspace that was freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
using workspace = ferry::tensor<std::byte, ferry::device_space>;
const std::vector<int> indices(10);
// legal: workspace room("room", 4096);
// legal: static_cast<void>(ferry::make_plan(exec, indices, 4, room));
static_cast<void>(ferry::make_plan(exec, indices, 4, workspace("room", 4096)));

// ---- plan_of_plan: A plan is sorted already.
// expected-error: make_plan takes indices, not another plan
const auto plan = ferry::make_plan(exec, indices, 10);
// legal: ferry::gather(exec, table, plan, batch).wait();
static_cast<void>(ferry::make_plan(exec, plan, 10));

// ---- plan_with_duplicates: What repeated rows mean is asked of the verb that uses the plan.
// expected-error: this verb reads or copies every row it is asked for, so it takes no duplicates policy
// legal: static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::clamp{}));
static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::duplicates::sum{}));

// ---- plan_with_path: A plan moves no rows.
// expected-error: make_plan moves no rows, so it takes no path policy
// legal: static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::skip{}));
static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::path::direct{}));

// ---- policy_before_array: Policies come last.
// expected-errors: 5 are the last arguments of a verb
const std::vector<float> weights{1, 1};
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::scatter(exec, table, indices, batch, ferry::bounds::skip{}).wait();
ferry::copy(exec, batch, batch, ferry::path::direct{}).wait();
ferry::gather_bags(exec, table, indices, offsets, batch, weights, ferry::pooling::sum{}).wait();
static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::skip{}));
#else
ferry::gather(exec, table, indices, ferry::path::direct{}, batch).wait();
ferry::scatter(exec, table, ferry::bounds::skip{}, indices, batch).wait();
ferry::copy(exec, ferry::path::direct{}, batch, batch).wait();
ferry::gather_bags(exec, table, indices, offsets, batch, ferry::pooling::sum{}, weights).wait();
static_cast<void>(ferry::make_plan(exec, indices, ferry::bounds::skip{}, 10));
#endif

// ---- strided_batch: Nor are those of a LayoutStride view.
// expected-error: verbs that work on rows take row-major arrays only; give the Kokkos::View LayoutRight
using stride [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutStride>;
using right [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutRight>;
// legal: ferry::scatter(exec, table, indices, right("view", 2, 4)).wait();
ferry::scatter(exec, table, indices, stride("view", Kokkos::LayoutStride(2, 4, 4, 1))).wait();

// ---- table_of_raw_pointer: A pointer says neither extents nor space.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, table.data(), indices, batch).wait();
// or: ferry::scatter(exec, table, indices, batch.data()).wait();
// or: ferry::scatter_add(exec, static_cast<float**>(nullptr), indices, batch).wait();
// or: ferry::copy(exec, 1.0f, batch).wait();
// or: ferry::init::zeros(exec, table.data());

// ---- table_of_unique_ptr: It knows where its memory is, but no extents.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
const auto owner = std::make_unique<float[]>(40);
// legal: const ferry::tensor_view rows(owner.get(), 10, 4);
// legal: ferry::gather(exec, rows, indices, batch).wait();
ferry::gather(exec, owner, indices, batch).wait();

// ---- table_of_vectors: Vectors own their elements, whose bytes alone a copy would take.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
std::vector<double> table(10), batch(2);
std::vector<std::vector<double>> vectors(10), some(2);
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, vectors, indices, some).wait();

// ---- two_bounds: A bad index is handled one way; a bundle counts.
// expected-error: at most one bounds policy may be given
// legal: ferry::gather(exec, table, indices, batch, ferry::policies<ferry::bounds::clamp>{}).wait();
ferry::gather(exec, table, indices, batch, ferry::bounds::skip{}, ferry::policies<ferry::bounds::clamp>{})
    .wait();

// ---- two_duplicates: Repeated rows are handled one way, even if it is the same.
// expected-error: at most one duplicates policy may be given
// legal: ferry::scatter(exec, table, indices, batch, ferry::duplicates::last{}).wait();
ferry::scatter(exec, table, indices, batch, ferry::duplicates::last{}, ferry::duplicates::last{}).wait();

// ---- two_paths: Rows travel one way.
// expected-error: at most one path policy may be given
// legal: ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::gather(exec, table, indices, batch, ferry::path::direct{}, ferry::path::staged{}).wait();

// ---- verb_without_execution_space: A number is no execution space.
// expected-errors: 1 the first argument of a verb must be an instance of a Kokkos execution space
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(0, table, indices, batch).wait();
// or: static_cast<void>(ferry::make_plan(indices, indices, 10));
// or: ferry::init::zeros(table, table);

// ---- verbs_with_an_argument_missing: The sentence says how the verb is called.
// expected-errors: 25 called as
ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
ferry::gather_unique(exec, table, indices, batch).wait();
ferry::scatter(exec, table, indices, batch).wait();
ferry::scatter_add(exec, table, indices, batch).wait();
ferry::copy(exec, batch, batch).wait();
static_cast<void>(ferry::clone(exec, table));
ferry::gather_bags(exec, table, indices, offsets, batch).wait();
ferry::step_bags(exec, rule, table, state, indices, offsets, batch).wait();
ferry::catch_up(exec, rule, table, state).wait();
static_cast<void>(ferry::make_plan(exec, indices, 10));
static_cast<void>(ferry::make_plan(exec, indices, table));
static_cast<void>(ferry::unique(exec, indices, codes));
static_cast<void>(ferry::plan_workspace_bytes(exec, 2, table));
ferry::quantize(exec, table, codes).wait();
ferry::dequantize(exec, codes, table).wait();
ferry::init::zeros(exec, table);
ferry::init::constant(exec, table, 1);
ferry::init::uniform(exec, table, -1.0, 1.0, 7);
ferry::init::normal(exec, table, 0.0, 1.0, 7);
ferry::init::xavier_uniform(exec, table, 1.0, 7);
ferry::init::kaiming_normal(exec, table, {}, 7);
ferry::init::trunc_normal(exec, table, 0.0, 1.0, -2.0, 2.0, 7);
static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, batch));
static_cast<void>(ferry::optim::grad_norm(exec, batch));
static_cast<void>(ferry::explain(ferry::verb::gather, table, 2));
#else
static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table));
ferry::gather_unique(exec, table, indices).wait();
ferry::scatter(exec, table, indices).wait();
ferry::scatter_add(exec, table, batch).wait();
ferry::copy(exec, table).wait();
ferry::clone(exec).wait();
ferry::gather_bags(exec, table, indices, batch).wait();
ferry::step_bags(exec, rule, table, state, indices, batch).wait();
ferry::catch_up(exec, rule, table).wait();
static_cast<void>(ferry::make_plan(exec, indices));
static_cast<void>(ferry::unique(exec, indices));
static_cast<void>(ferry::plan_workspace_bytes(exec, 2));
ferry::quantize(exec, table).wait();
ferry::dequantize(exec, codes).wait();
ferry::init::zeros(exec);
ferry::init::constant(exec, table);
ferry::init::uniform(exec, table, -1.0, 1.0);
ferry::init::normal(exec, table, 0.0, 1.0);
ferry::init::custom(exec, table);
ferry::init::xavier_uniform(exec, table, 1.0);
ferry::init::kaiming_normal(exec, table, ferry::init::kaiming_options{});
ferry::init::trunc_normal(exec, table, 0.0, 1.0, 7);
static_cast<void>(ferry::optim::clip_grad_norm(exec, batch));
static_cast<void>(ferry::optim::grad_norm(exec));
static_cast<void>(ferry::explain(ferry::verb::gather, table));
#endif

// ---- verbs_without_execution_space: What has no execution space begins with the next argument.
// expected-errors: 20 the first argument of a verb must be an instance of a Kokkos execution space
ferry::tensor<float, ferry::pinned_space> second("other", 10, 4);
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, table);
ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, codes, indices, batch).wait();
static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
static_cast<void>(ferry::gather<ferry::pinned_space, double>(exec, table, indices));
ferry::gather(exec, rule, table, state, indices, batch).wait();
ferry::scatter(exec, table, indices, batch).wait();
ferry::scatter(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::scatter_add(exec, table, indices, batch).wait();
ferry::step(exec, rule, table, state, indices, batch).wait();
ferry::catch_up(exec, rule, table, state).wait();
ferry::copy(exec, table, second).wait();
static_cast<void>(ferry::clone(exec, table));
static_cast<void>(ferry::clone<ferry::pinned_space>(exec, table));
ferry::gather_bags(exec, table, indices, offsets, batch).wait();
ferry::step_bags(exec, rule, table, state, indices, offsets, batch).wait();
ferry::quantize(exec, table, codes).wait();
ferry::dequantize(exec, codes, table).wait();
static_cast<void>(ferry::make_plan(exec, indices, 10));
ferry::init::zeros(exec, table);
ferry::init::constant(exec, table, 1);
ferry::init::uniform(exec, table, 0.0, 1.0, 1);
ferry::init::normal(exec, table, 0.0, 1.0, 1);
#else
ferry::gather(table, indices, batch).wait();
ferry::gather(codes, indices, batch).wait();
static_cast<void>(ferry::gather<ferry::pinned_space>(table, indices));
static_cast<void>(ferry::gather<ferry::pinned_space, double>(table, indices));
ferry::gather(rule, table, state, indices, batch).wait();
ferry::scatter(table, indices, batch).wait();
ferry::scatter(table, indices, batch, ferry::path::direct{}).wait();
ferry::scatter_add(table, indices, batch).wait();
ferry::step(rule, table, state, indices, batch).wait();
ferry::catch_up(rule, table, state).wait();
ferry::copy(table, second).wait();
static_cast<void>(ferry::clone(table));
static_cast<void>(ferry::clone<ferry::pinned_space>(table));
ferry::gather_bags(table, indices, offsets, batch).wait();
ferry::step_bags(rule, table, state, indices, offsets, batch).wait();
ferry::quantize(table, codes).wait();
ferry::dequantize(codes, table).wait();
static_cast<void>(ferry::make_plan(indices, 10));
ferry::init::zeros(table);
ferry::init::constant(table, 1);
ferry::init::uniform(table, 0.0, 1.0, 1);
ferry::init::normal(table, 0.0, 1.0, 1);
#endif

// ---- widths_differ_by_type: Both widths are known when the program is compiled.
// expected-error: the widths of table and batch are fixed by their types and differ
ferry::tensor<float, ferry::mapped_space, ferry::extents<ferry::dyn, 8>> eight("eight", 10);
ferry::tensor<float, ferry::device_space, ferry::extents<ferry::dyn, 9>> nine("nine", 2);
// legal: ferry::gather(exec, nine, indices, nine).wait();
ferry::gather(exec, eight, indices, nine).wait();

// ---- workspace_of_floats: The workspace of a plan is bytes.
// expected-error: the workspace of make_plan must be an array of std::byte that may be written
// legal: ferry::tensor<std::byte, ferry::device_space> workspace("workspace", 4096);
ferry::tensor<float, ferry::device_space> workspace("workspace", 4096);
static_cast<void>(ferry::make_plan(exec, indices, 10, workspace));
