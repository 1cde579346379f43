// SPDX-License-Identifier: Apache-2.0
// Verbs of rows. See xfail.py.
#include "arrays.hpp"

#include <ferry/distributed.hpp>
#include <ferry/quantized.hpp>

#include <span>
#include <string>
#include <utility>

// ---- convert_rows_of_structs: A struct is moved as it is.
// expected-error: the element types of table and batch differ and at least one of them is no number, so rows
// can't be converted
// legal: ferry::gather(exec, structs, indices, structs).wait();
ferry::gather(exec, table, indices, structs).wait();
// or: ferry::copy(exec, structs, batch).wait();

// ---- cooperative_inside_of_device: The host has no share in rows that it can't reach.
// expected-error: path::cooperative lets device and host share the rows of a table in host memory
ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
ferry::tensor<float, ferry::device_space> far("far", 10, 4);
// legal: ferry::gather(exec, table, indices, batch, ferry::path::cooperative{}).wait();
ferry::gather(exec, far, indices, batch, ferry::path::cooperative{}).wait();

// ---- write_to_const: A verb does not write to an array of constant elements.
// expected-first-error: the verb writes to this array, but its elements are const
[[maybe_unused]] const auto& fixed = batch;
// legal: ferry::copy(exec, fixed, batch).wait();
ferry::copy(exec, batch, fixed).wait();
// or: ferry::copy_rows(exec, table, indices, fixed, indices).wait();
// or: ferry::gather(exec, table, indices, fixed).wait();
// or: ferry::scatter(exec, fixed, indices, table).wait();
// or: ferry::scatter_add(exec, fixed, indices, table).wait();
// or: ferry::step(exec, rule, fixed, state, indices, batch).wait();
// or: ferry::init::zeros(exec, fixed);

// ---- copy_of_strings: Strings own their characters, in a Kokkos::View, too.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
const Kokkos::View<int*> source("from", 3), target("to", 3);
const Kokkos::View<std::string*, Kokkos::HostSpace> names("names", 3), labels("others", 3);
// legal: ferry::copy(exec, source, target).wait();
ferry::copy(exec, names, labels).wait();

// ---- copy_of_ticket: One ticket waits for the work.
// expected-first-error: a ticket is not copied
ferry::ticket work;
// legal: ferry::ticket second = std::move(work);
ferry::ticket second = work;
second.wait();

// ---- copy_ordered: A copy has no indices that could be sorted.
// expected-error: copy moves whole arrays, so there are no rows to sort
ferry::tensor<float, ferry::pinned_space> source("from", 10, 4);
ferry::tensor<float, ferry::device_space> target("to", 10, 4);
// legal: ferry::copy(exec, source, target, ferry::path::direct{}).wait();
ferry::copy(exec, source, target, ferry::path::ordered{}).wait();

// ---- copy_rows_by_engines_of_mapped: Copy engines read mapped memory slowly.
// expected-error: path::copy_engine moves rows between device_space and pinned_space; the engines read mapped_space
// at a tenth of the rate of the link, and pageable memory not at all
// legal: ferry::tensor<float, ferry::pinned_space> shelf("shelf", 10, 4);
ferry::tensor<float, ferry::mapped_space> shelf("shelf", 10, 4);
ferry::copy_rows(exec, shelf, indices, batch, indices, ferry::path::copy_engine{}).wait();

// ---- copy_rows_of_codes_to_numbers: Codes travel as they are.
// expected-error: copy_rows moves codes and scales as they are, so both tables are quantized_tensors of one
// quantization
using codes = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::device_space>;
const codes source("from", 10, 32);
// legal: codes target("to", 2, 32);
ferry::tensor<float, ferry::device_space> target("to", 2, 32);
ferry::copy_rows(exec, source, indices, target, indices).wait();

// ---- copy_rows_ordered: Positions have an order of their own on each side.
// expected-error: copy_rows has rows of two tables in the order of the lists
// legal: ferry::copy_rows(exec, table, indices, batch, indices, ferry::path::direct{}).wait();
ferry::copy_rows(exec, table, indices, batch, indices, ferry::path::ordered{}).wait();

// ---- copy_rows_summed: Rows are replaced.
// expected-error: copy_rows replaces rows: duplicates::last, first, reject or assume_unique; for sums gather the
// rows and call scatter_add
// legal: ferry::copy_rows(exec, table, indices, batch, indices, ferry::duplicates::first{}).wait();
ferry::copy_rows(exec, table, indices, batch, indices, ferry::duplicates::sum{}).wait();

// ---- copy_with_bounds: A copy has no indices.
// expected-error: this verb uses no indices, so it takes no bounds policy
// legal: ferry::copy(exec, batch, batch, ferry::path::direct{}).wait();
ferry::copy(exec, batch, batch, ferry::bounds::clamp{}).wait();

// ---- gather_by_engines: Copy engines serve copy_rows.
// expected-error: path::copy_engine moves whole rows by the device's copy engines, which copy_rows alone does
// legal: ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::gather(exec, table, indices, batch, ferry::path::copy_engine{}).wait();

// ---- gather_into_a_space_of_kokkos: ferry has spaces of its own.
// expected-errors: 2 is one of ferry's memory spaces
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::gather<ferry::pageable_space>(exec, table, indices));
static_cast<void>(ferry::gather<ferry::pageable_space, double>(exec, table, indices));
static_cast<void>(ferry::clone<ferry::pageable_space>(exec, table));
#else
static_cast<void>(ferry::gather<Kokkos::HostSpace>(exec, table, indices));
static_cast<void>(ferry::gather<float>(exec, table, indices));
static_cast<void>(ferry::clone<Kokkos::HostSpace>(exec, table));
#endif

// ---- gather_into_temporary: The work would write to memory that was freed.
// expected-error: the verb writes to a temporary tensor, vector or array
using batch = ferry::tensor<float, ferry::device_space>;
const std::vector<int> indices(2);
// legal: batch out("batch", 2, 4);
// legal: ferry::gather(exec, table, indices, out.first(2)).wait();
ferry::gather(exec, table, indices, batch("batch", 2, 4)).wait();

// ---- gather_pairs_to_floats: A pair of 4-bit numbers has no value of its own.
// expected-error: the element types of table and batch differ and at least one of them is no number, so rows
// can't be converted
ferry::tensor<ferry::fp4_e2m1_pair_t, ferry::mapped_space> pairs("pairs", 10, 4);
// legal: ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, pairs, indices, batch).wait();

// ---- gather_unique_staged: Each row is read by kernels.
// expected-error: so it takes no path policy
// legal: ferry::gather_unique(exec, table, indices, batch).wait();
ferry::gather_unique(exec, table, indices, batch, ferry::path::staged{}).wait();

// ---- gather_with_duplicates: A gather may read a row as often as it likes.
// expected-error: this verb reads or copies every row it is asked for, so it takes no duplicates policy
// legal: ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum{}).wait();
ferry::gather(exec, table, indices, batch, ferry::duplicates::sum{}).wait();
// or: ferry::copy(exec, batch, batch, ferry::duplicates::sum{}).wait();

// ---- gather_with_two_lists: A second list of indices is no policy.
// expected-errors: 2 the trailing arguments must be policies
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, indices, batch).wait();
static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
#else
ferry::gather(exec, table, indices, indices, batch).wait();
static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices, batch));
#endif

// ---- gather_without_output: It goes into an array, or into a new tensor of a named space.
// expected-errors: 3 gather is called as gather\(exec, table, indices, out, policies...\)
#ifdef FERRY_XFAIL_FIXED
ferry::gather(exec, table, indices, batch).wait();
ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
auto rows = ferry::gather<ferry::pinned_space>(exec, table, indices);
#else
ferry::gather(exec, table, indices).wait();
ferry::gather(exec, table, indices, ferry::path::direct{}).wait();
auto rows = ferry::gather(exec, table);
#endif

// ---- scatter_add_by_rank_of_means: A mean of the sums of ranks is no mean of the values.
// expected-error: under reduce::by_rank each rank sums its duplicates first, so it goes with duplicates::sum only
void refused(const Kokkos::DefaultExecutionSpace& exec,
             ferry::sharded_table<float, ferry::mapped_space>& table, const std::vector<int>& indices,
             const ferry::tensor<float, ferry::mapped_space>& values) {
  // legal: using counted = ferry::duplicates::sum;
  using counted = ferry::duplicates::mean;
  ferry::scatter_add(exec, table, indices, values, ferry::reduce::by_rank{}, counted{}).wait();
}

// ---- scatter_add_cooperative: Where the two ends meet a row may be written twice, which must not add twice.
// expected-error: path::cooperative serves gather and scatter only
ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
// legal: ferry::scatter_add(exec, table, indices, batch, ferry::path::ordered{}).wait();
ferry::scatter_add(exec, table, indices, batch, ferry::path::cooperative{}).wait();

// ---- scatter_add_of_structs: Structs have no sum, and numbers of 8 bits are stored, not computed with.
// expected-error: scatter_add adds, so the elements of table and values must be numbers
// legal: ferry::scatter(exec, structs, indices, structs).wait();
ferry::scatter_add(exec, structs, indices, structs).wait();
// or: ferry::scatter_add(exec, codes, indices, batch).wait();

// ---- scatter_in_any_order: A row that is replaced has nothing to add to.
// expected-error: duplicates::sum_any_order adds to rows where they lie
ferry::tensor<float, ferry::device_space> table("table", 10, 4);
// legal: ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum{}).wait();
ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum_any_order{}).wait();

// ---- scatter_sum_of_structs: Structs have no sum, and values of 8 bits are not added.
// expected-error: duplicates::sum and duplicates::mean need elements that are numbers
// legal: ferry::scatter(exec, structs, indices, structs, ferry::duplicates::last{}).wait();
ferry::scatter(exec, structs, indices, structs, ferry::duplicates::sum{}).wait();
// or: ferry::scatter(exec, codes, indices, codes, ferry::duplicates::mean{}).wait();

// ---- staged_inside_of_device: Nothing has to go through host memory.
// expected-error: path::staged moves rows through host memory, but table and batch both live in device_space;
// use path::direct
// legal: ferry::gather(exec, table, indices, batch, ferry::path::staged{}).wait();
ferry::gather(exec, device_table, indices, batch, ferry::path::staged{}).wait();
// or: ferry::copy(exec, device_table, batch, ferry::path::staged{}).wait();
