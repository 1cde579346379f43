// SPDX-License-Identifier: Apache-2.0
// Cached tables and prefetchers. See xfail.py.
#include "arrays.hpp"

#include <ferry/cache.hpp>
#include <ferry/cache/verbs.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>
#include <ferry/quantized.hpp>

#include <span>

// ---- cached_file_written: A table over a file can only be read.
// expected-error: the backing table of this cached_table is read-only
#ifdef FERRY_XFAIL_FIXED
#else
auto table = ferry::io::map_npy<float>("table.npy");
#endif
ferry::cached_table hot(table, ferry::cache::first{2});
ferry::tensor<float, ferry::device_space> rows("rows", 1, 4);
ferry::scatter(exec, hot, std::vector{1}, rows).wait();

// ---- cached_gather_of_occupancy: Verbs on rows take no share of the device.
// expected-error: verbs on a cached_table take no occupancy policy; resolve does
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
// legal: ferry::gather(exec, hot, indices, batch).wait();
ferry::gather(exec, hot, indices, batch, ferry::occupancy::blocks<8>{}).wait();

// ---- cached_quantized_added: A quantized row is replaced or trained as a whole.
// expected-error: scatter_add adds to rows of numbers
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
ferry::cached_table hot(table, ferry::cache::first{2});
ferry::tensor<float, ferry::device_space> rows("rows", 1, 32);
// legal: ferry::scatter(exec, hot, std::vector{1}, rows).wait();
ferry::scatter_add(exec, hot, std::vector{1}, rows).wait();

// ---- cached_quantized_copied: Codes alone are not the table.
// expected-error: verbs on whole tables take no cached_table before codes and scales
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
const ferry::cached_table hot(table, ferry::cache::first{2});
#ifdef FERRY_XFAIL_FIXED
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> twin("twin", 10, 32);
ferry::copy(exec, table, twin).wait();
#else
ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> twin("twin", 10, 32);
ferry::copy(exec, hot, twin).wait();
#endif

// ---- cached_table_cooperative: Kernels find the rows of device memory and of host memory.
// expected-error: kernels move the rows of a cached_table: path::direct or path::ordered
ferry::cached_table hot(table, ferry::cache::first{2});
// legal: ferry::gather(exec, hot, indices, batch, ferry::path::ordered{}).wait();
ferry::gather(exec, hot, indices, batch, ferry::path::cooperative{}).wait();

// ---- cached_table_of_const: Changes could not be written back.
// expected-error: a cached_table writes changes back, so its table must not be const
#ifdef FERRY_XFAIL_FIXED
#else
const ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#endif
const ferry::cached_table hot(table, ferry::cache::first{2});

// ---- cached_table_of_device: A table in device memory gains nothing.
// expected-error: a table in device_space needs none
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
const ferry::cached_table hot(table, ferry::cache::first{2});

// ---- cached_table_of_number: A number of rows is an option of the policy.
// expected-errors: 2 says which rows are cached
#ifdef FERRY_XFAIL_FIXED
const ferry::cached_table hot(table, ferry::cache::frequency{.rows = 10});
#else
const ferry::cached_table hot(table, 10);
const ferry::cached_table cold(table);
#endif

// ---- cached_table_of_temporary: It refers to its table.
// expected-errors: 1 so the table can't be a temporary
// legal: const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
const ferry::cached_table hot(ferry::tensor<float, ferry::mapped_space>("table", 10, 4),
                              ferry::cache::first{.rows = 2});

// ---- cached_table_resizes_list: A number says nothing about which rows.
// expected-error: the rows of this cache policy are listed one by one; make another cached_table for other rows
// legal: ferry::cached_table hot(table, ferry::cache::first{2});
ferry::cached_table hot(table, ferry::cache::fixed{{1, 2}});
hot.resize(3);

// ---- cached_table_with_directory: A cache has one kind of directory.
// expected-errors: 1 so leave the third argument out
struct dense {};

void refused() {
  // legal: const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2}, dense{});
}

// ---- exchange_on_tensor: The rows of an ordinary table belong to one rank.
// expected-error: path::exchange moves rows between the ranks of a sharded_table, so it serves gathers from sharded tables only
void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::tensor<float, ferry::mapped_space>& table, const std::vector<int>& indices,
             ferry::tensor<float, ferry::mapped_space>& out) {
  // legal: ferry::gather(exec, table, indices, out).wait();
  ferry::gather(exec, table, indices, out, ferry::path::exchange{}).wait();
}

// ---- forget_by_frequency: Only groups are emptied.
// expected-error: forget empties a group of cache::lru
#ifdef FERRY_XFAIL_FIXED
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
#else
ferry::cached_table hot(table, ferry::cache::frequency{.rows = 2});
#endif
hot.forget(exec, 0).wait();

// ---- forget_of_rows: A group has a number.
// expected-error: forget takes the number of a group
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
// legal: hot.forget(exec, 0u).wait();
hot.forget(exec, 0.5).wait();

// ---- lru_prefetch_by_frequency: Other policies choose their rows.
// expected-error: resolve takes a cached_table of cache::lru, whose slots change with each batch
#ifdef FERRY_XFAIL_FIXED
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
#else
ferry::cached_table hot(table, ferry::cache::frequency{.rows = 2});
#endif
hot.prefetch(exec, std::vector<std::int64_t>{1}).wait();

// ---- lru_prefetch_of_number: Rows are an array.
// expected-error: resolve and prefetch take an array of rows
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
// legal: hot.prefetch(exec, std::vector<std::int64_t>{1}).wait();
hot.prefetch(exec, 1).wait();

// ---- prefetch_by_device_indices: The host reads the indices of a prefetch.
// expected-error: prefetch reads the indices on the host
const auto table = ferry::io::map_npy<float>("w.npy");
// legal: const ferry::tensor<std::int64_t, ferry::pinned_space> indices("indices", 4);
const ferry::tensor<std::int64_t, ferry::device_space> indices("indices", 4);
table.prefetch(indices);

// ---- prefetcher_of_vector: samples_of makes a source of it.
// expected-errors: 2 a prefetcher gets its batches from a source
#ifdef FERRY_XFAIL_FIXED
ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 2});
ferry::row_prefetcher rows(exec, table, ferry::samples_of(indices), {.batch = 2});
#else
ferry::prefetcher batches(exec, indices, {.batch = 2});
ferry::row_prefetcher rows(exec, table, indices, {.batch = 2});
ferry::row_prefetcher none(exec, table, ferry::prefetch_options{.batch = 2});
#endif

// ---- prefetcher_with_misspelt_options: Options are those of prefetch_options.
// expected-first-error: the options of a prefetcher are those of ferry::prefetch_options
// legal: ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 2});
ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch_size = 2});

// ---- resolve_by_frequency: Other policies choose their rows.
// expected-first-error: resolve takes a cached_table of cache::lru, whose slots change with each batch
// most-lines: 20
#ifdef FERRY_XFAIL_FIXED
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
#else
ferry::cached_table hot(table, ferry::cache::frequency{.rows = 2});
#endif
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots).wait();

// ---- resolve_by_path: Kernels fetch the rows.
// expected-first-error: resolve takes the policies overflow
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
// legal: ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots, ferry::overflow::spill{}).wait();
ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots, ferry::path::direct{}).wait();

// ---- resolve_in_table: The table itself has no slots.
// expected-first-error: resolve takes a cached_table, not the table itself
// most-lines: 20
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
// legal: ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots).wait();
ferry::resolve(exec, table, std::vector<std::int64_t>{1}, slots).wait();

// ---- resolve_into_const: Slots are written.
// expected-first-error: the verb writes to this array, but its elements are const
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
#ifdef FERRY_XFAIL_FIXED
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
#else
const ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
#endif
ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots).wait();

// ---- resolve_into_floats: Slots are numbers of rows.
// expected-first-error: resolve writes slots of int32 or int64
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
// legal: ferry::tensor<std::int64_t, ferry::device_space> slots("slots", 1);
ferry::tensor<float, ferry::device_space> slots("slots", 1);
ferry::resolve(exec, hot, std::vector<std::int64_t>{1}, slots).wait();

// ---- resolve_of_plan: Equal rows are found on the way.
// expected-first-error: resolve takes the rows themselves
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
#ifdef FERRY_XFAIL_FIXED
const std::vector<std::int64_t> rows{1};
#else
const auto rows = ferry::make_plan(exec, std::vector<std::int64_t>{1}, 10);
#endif
ferry::resolve(exec, hot, rows, slots).wait();

// ---- resolve_of_unsigned: -1 is no row.
// expected-first-error: resolve and prefetch take rows of int32 or int64
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
ferry::tensor<std::int32_t, ferry::device_space> slots("slots", 1);
// legal: ferry::resolve(exec, hot, std::vector<std::int32_t>{1}, slots).wait();
ferry::resolve(exec, hot, std::vector<std::uint32_t>{1}, slots).wait();

// ---- resolve_without_slots: prefetch has no slots.
// expected-first-error: resolve is called as resolve\(exec, hot, rows, slots, policies...\)
ferry::cached_table hot(table, ferry::cache::lru{.slots = 2});
// legal: hot.prefetch(exec, std::vector<std::int64_t>{1}).wait();
ferry::resolve(exec, hot, std::vector<std::int64_t>{1}).wait();

// ---- row_prefetcher_of_temporary
// The rows of the table would be freed before the first batch. A slice refers to rows that stay.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
using table = ferry::tensor<float, ferry::mapped_space>;
const std::vector<std::int32_t> samples(10);
// legal: table weights("table", 4, 4);
// legal: const ferry::row_prefetcher rows(exec, weights.first(4), ferry::samples_of(samples));
const ferry::row_prefetcher rows(exec, table("table", 4, 4), ferry::samples_of(samples));

// ---- row_prefetcher_without_indices: The first array of a batch names the rows.
// expected-error: the first array of a row_prefetcher's source must hold indices: int32, uint32, int64 or uint64
const std::vector<float> numbers(10);
const std::vector<int> rows(10);
// legal: ferry::row_prefetcher batches(exec, table, ferry::samples_of(rows, numbers));
ferry::row_prefetcher batches(exec, table, ferry::samples_of(numbers, rows));

// ---- samples_in_device_memory: Host threads read the samples.
// expected-error: the threads of a prefetcher read the samples, so their tables can't be in device_space
[[maybe_unused]] const ferry::tensor<float, ferry::device_space> samples("there", 10);
[[maybe_unused]] const std::vector<float> table(10);
// legal: static_cast<void>(ferry::samples_of(table));
static_cast<void>(ferry::samples_of(samples));

// ---- samples_of_nothing: Samples are rows of something.
// expected-error: samples_of needs a table
[[maybe_unused]] const std::vector<float> table(10);
// legal: static_cast<void>(ferry::samples_of(table));
static_cast<void>(ferry::samples_of());

// ---- samples_of_number: Samples are rows of something.
// expected-error: samples_of takes arrays of rows: tensors, slices, Kokkos Views, spans or vectors
[[maybe_unused]] const std::vector<float> table(10);
// legal: static_cast<void>(ferry::samples_of(table));
static_cast<void>(ferry::samples_of(3));

// ---- samples_of_temporary: The threads of the prefetcher would read memory that was freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
// legal: const std::vector<float> table(10);
// legal: static_cast<void>(ferry::samples_of(table));
static_cast<void>(ferry::samples_of(std::vector<float>(10)));

// ---- source_of_wrong_function: The function takes a span for each field.
// expected-error: the function of made_by must be callable, as const, with a batch_request and a span for each field
[[maybe_unused]] const auto function = [](const ferry::batch_request&, std::span<float>) {};
// legal: static_cast<void>(ferry::made_by(10, function, ferry::batch_field<float>("x")));
static_cast<void>(ferry::made_by(10, function, ferry::batch_field<double>("x")));

// ---- source_without_fields: A batch has arrays.
// expected-error: made_by needs a batch_field for each array of a batch
[[maybe_unused]] const auto nothing = [](const ferry::batch_request&) {};
[[maybe_unused]] const auto function = [](const ferry::batch_request&, std::span<float>) {};
// legal: static_cast<void>(ferry::made_by(10, function, ferry::batch_field<float>("x")));
static_cast<void>(ferry::made_by(10, nothing));
