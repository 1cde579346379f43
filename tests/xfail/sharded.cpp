// SPDX-License-Identifier: Apache-2.0
// Sharded tables, communicators and peers. See xfail.py.
#include "arrays.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/distributed.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>
#include <ferry/quantized.hpp>

#include <string>
#include <string_view>
#include <utility>

extern const ferry::communicator comm;
extern ferry::sharded_table<float, ferry::mapped_space> sharded, sharded_second;
extern ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space> coded_shards;
extern const ferry::sharded_plan<Kokkos::DefaultExecutionSpace> sharded_plan;

/// All rows lie on the first rank.
struct first_rank {
  static constexpr std::string_view name = "first_rank";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
};

// ---- bag_grads_of_a_sharded_plan: The bags of a row may lie on several ranks.
// expected-first-error: bag_grads is called as bag_grads\(plan, offsets, pooled_grads, pooling
const auto plan = ferry::make_plan(exec, indices, 10);
using ferry::optim::bag_grads, ferry::optim::grad_norm;
// legal: static_cast<void>(grad_norm(exec, bag_grads(plan, offsets, pooled, ferry::pooling::sum{})));
static_cast<void>(grad_norm(exec, bag_grads(sharded_plan, offsets, pooled, ferry::pooling::sum{})));

// ---- cached_table_of_sharded_table: Its rows lie on several ranks.
// expected-errors: 1 or another cached_table has no cache
// legal: const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
const ferry::cached_table hot(sharded, ferry::cache::first{.rows = 2});
// or: const ferry::cached_table cold(exec, table, ferry::cache::first{.rows = 2});

// ---- catch_up_of_sharded_quantized: Quantized rows lose what a step without a gradient changes.
// expected-error: catch_up is for tables of floating-point numbers
// legal: auto& trained = sharded;
auto& trained = coded_shards;
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, trained);
ferry::catch_up(exec, rule, trained, state).wait();

// ---- checkpoint_of_another_sharded_state: A rule and the sharded state of another one.
// expected-error: a checkpoint needs the state that make_state made for this optimizer
ferry::io::checkpoint run("run.ckpt");
ferry::optim::adam adam;
[[maybe_unused]] ferry::optim::adamw decoupled;
auto moments = ferry::optim::make_state(adam, sharded);
// legal: run.add("adam", adam, moments);
run.add("adam", decoupled, moments);

// ---- communicator_of_a_number_of_devices: A rank has a device of its own choice.
// expected-first-error: communicator::devices takes the ids of devices
// legal: const auto comm = ferry::communicator::devices({0, 1});
const auto comm = ferry::communicator::devices(2);

// ---- for_each_table_of_sharded_quantized: Owners pool and train rows of numbers.
// expected-errors: 1 for_each_table takes tables of one element type in one memory space
[[maybe_unused]] std::vector<ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space>>
    range;
// legal: static_cast<void>(ferry::for_each_table(sharded));
static_cast<void>(ferry::for_each_table(coded_shards));
// or: static_cast<void>(ferry::for_each_table(range));

// ---- gather_with_a_sharded_plan: Such a plan has the routes of a batch between ranks, for one table.
// expected-error: a sharded_plan is for verbs on one sharded table; give this one the indices
const auto tables = ferry::for_each_table(sharded, sharded_second);
// legal: ferry::gather_bags(exec, tables, indices, offsets, pooled).wait();
ferry::gather_bags(exec, tables, sharded_plan, offsets, pooled).wait();
// or: ferry::gather(exec, table, sharded_plan, batch).wait();

// ---- init_of_sharded_quantized: Initial values are numbers, which quantize encodes.
// expected-error: init fills tables of numbers; initialise a sharded_table of them, and quantize it
struct sum {
  KOKKOS_FUNCTION double operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<double>(row + column);
  }
};

void refused() {
  // legal: auto& filled = sharded;
  auto& filled = coded_shards;
  ferry::init::zeros(exec, filled);
  ferry::init::constant(exec, filled, 1);
  ferry::init::uniform(exec, filled, -1, 1, 5);
  ferry::init::normal(exec, filled, 0, 1, 5);
  ferry::init::custom(exec, filled, sum{});
}

// ---- peer_of_a_host_sharding: Kernels find the owners of rows, so they call the functions of the sharding.
// expected-error: path::peer finds the owners of rows in kernels
struct all_on_first : first_rank {
#ifdef FERRY_XFAIL_FIXED
  static constexpr bool in_kernels = true;
  [[nodiscard]] ferry::kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
#endif
};

void refused(const ferry::sharded_table<float, ferry::mapped_space, all_on_first>& shards) {
  ferry::gather(exec, shards, indices, batch, ferry::path::peer{}).wait();
}

// ---- peer_of_a_sharded_scatter: Owners write their rows themselves, in the order of the ranks.
// expected-error: path::peer reads the shards of a sharded_table, so it serves gather from one alone
// legal: ferry::scatter(exec, sharded, indices, batch).wait();
ferry::scatter(exec, sharded, indices, batch, ferry::path::peer{}).wait();

// ---- peer_of_an_ordinary_table: An ordinary table has no shards of other ranks.
// expected-error: path::peer reads the shards of a sharded_table
const std::vector<int> indices{1, 2, 3};
// legal: ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::gather(exec, table, indices, batch, ferry::path::peer{}).wait();

// ---- peer_with_a_sharded_plan: It sorts what travels to the owners; path::peer reads by the rows of the batch.
// expected-error: path::peer takes indices or a row_plan
// legal: ferry::gather(exec, sharded, ferry::make_plan(exec, indices, 10), batch, ferry::path::peer{}).wait();
ferry::gather(exec, sharded, sharded_plan, batch, ferry::path::peer{}).wait();

// ---- row_prefetcher_of_sharded_table: Kernels do not dereference rows of other ranks.
// expected-errors: 1 a row_prefetcher reads rows of a table that kernels dereference
// legal: ferry::row_prefetcher batches(exec, table, ferry::samples_of(indices), {.batch = 2});
ferry::row_prefetcher batches(exec, sharded, ferry::samples_of(indices), {.batch = 2});

// ---- scatter_add_to_sharded_quantized: A quantized row is replaced or trained as a whole.
// expected-error: scatter_add adds to rows of numbers
// legal: const ferry::optim::sgd rule;
// legal: auto state = ferry::optim::make_state(rule, coded_shards);
// legal: ferry::scatter(exec, coded_shards, indices, batch).wait();
// legal: ferry::step(exec, rule, coded_shards, state, indices, batch).wait();
ferry::scatter_add(exec, coded_shards, indices, batch).wait();

// ---- sharded_all_gather_text: A string owns memory that other ranks can't read.
// expected-error: communicator::all_gather sends the bytes of a value, so it must be trivially copyable
// legal: (void)comm.all_gather(std::string("here").size());
(void)comm.all_gather(std::string("here"));

// ---- sharded_all_reduce_structs: Structs can be moved, but not added.
// expected-error: all_reduce adds, so the elements must be numbers
// legal: ferry::all_reduce(exec, comm, table).wait();
ferry::all_reduce(exec, comm, structs).wait();

// ---- sharded_copy_of_codes: A copy moves elements as they are.
// expected-errors: 1 copy moves numbers, or codes and scales, as they are
#ifdef FERRY_XFAIL_FIXED
ferry::quantize(exec, sharded, coded_shards).wait();
#else
ferry::copy(exec, sharded, coded_shards).wait();
ferry::copy(exec, coded_shards, sharded).wait();
#endif

// ---- sharded_devices_of_another_space: As for the instances of the ranks.
// expected-error: communicator::devices makes instances of Kokkos::DefaultExecutionSpace
struct another_space {};
// legal: static_cast<void>(ferry::communicator::devices({0}));
static_cast<void>(ferry::communicator::devices<another_space>({0}));

// ---- sharded_exec_of_another_space: The ranks of a group of devices have instances of the space that has devices.
// expected-error: communicator::exec gives instances of Kokkos::DefaultExecutionSpace
struct other_space {};
// legal: static_cast<void>(comm.exec(0));
static_cast<void>(comm.exec<other_space>(0));

// ---- sharded_plan_of_another_backend: A sharded plan keeps what its execution space has sorted.
// expected-error: a sharded_plan serves verbs of the execution space that made it
// legal: using planner = Kokkos::DefaultExecutionSpace;
struct planner {};

void refused(const ferry::sharded_plan<planner>& plan) { ferry::gather(exec, sharded, plan, batch).wait(); }

// ---- sharded_records_in_two_spaces: A record lies in one memory space, also in a shard.
// expected-error: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space
using ferry::quantization::rowwise_int8, ferry::mapped_space;
// legal: using scale_space = mapped_space;
using scale_space = ferry::pageable_space;
const ferry::sharded_quantized_table<rowwise_int8, mapped_space, scale_space> shards("table", comm, 10, 32);

// ---- sharded_run_argument: The function of a run gets the number of its rank and an instance, and nothing else.
// expected-error: communicator::run needs a function of the rank and its execution space instance
// legal: comm.run([](int) {});
comm.run([](int, int) {});

// ---- sharded_table_of_quantization: Rows of codes and scales have a sharded table of their own.
// expected-error: quantized rows are spread as a sharded_quantized_table
using q = ferry::quantization::mxfp8;
// legal: const ferry::sharded_quantized_table<q, ferry::pageable_space> shards("table", comm, 10, 32);
const ferry::sharded_table<q, ferry::pageable_space> shards("table", comm, 10, 32);

// ---- sharded_table_without_label: A sharded table has a label and a communicator.
// expected-errors: 1 are its label, its communicator and its extents
// legal: const ferry::sharded_table<float, ferry::pageable_space> shards("table", comm, 10, 4);
const ferry::sharded_table<float, ferry::pageable_space> shards(comm, 10, 4);
// or: const ferry::sharded_table<float, ferry::pageable_space> shards("table", 10, 4);

// ---- sharded_tables_of_temporary: The list refers to its tables.
// expected-error: for_each_table refers to sharded tables
using table_type = ferry::sharded_table<float, ferry::mapped_space>;
// legal: static_cast<void>(ferry::for_each_table(sharded));
static_cast<void>(ferry::for_each_table(table_type("table", comm, 10, 4)));

// ---- sharded_tables_of_two_types: One launch finds the owners of all rows.
// expected-first-error: for_each_table takes sharded tables of one type
ferry::sharded_table<float, ferry::mapped_space, ferry::sharding::block> by_block("second", comm, 9, 3);
// legal: static_cast<void>(ferry::for_each_table(sharded, sharded_second));
static_cast<void>(ferry::for_each_table(sharded, by_block));

// ---- sharded_verbs_out_of_order: The order of arguments is that of verbs on ordinary tables.
// expected-errors: 1 policies such as path::direct|the instance of the execution space comes first
const ferry::optim::adam rule;
auto state = ferry::optim::make_state(rule, sharded);
// legal: ferry::gather(exec, sharded, indices, batch, ferry::path::direct{}).wait();
// legal: ferry::scatter(exec, sharded, indices, batch, ferry::path::direct{}).wait();
// legal: ferry::scatter_add(exec, sharded, indices, batch, ferry::path::direct{}).wait();
// legal: ferry::gather_bags(exec, sharded, indices, offsets, pooled, ferry::pooling::sum{}).wait();
// legal: ferry::catch_up(exec, rule, sharded, state).wait();
ferry::gather(exec, sharded, indices, ferry::path::direct{}, batch).wait();
// or: ferry::scatter(exec, sharded, indices, ferry::path::direct{}, batch).wait();
// or: ferry::scatter_add(exec, sharded, indices, ferry::path::direct{}, batch).wait();
// or: ferry::gather_bags(exec, sharded, indices, offsets, ferry::pooling::sum{}, pooled).wait();
// or: ferry::catch_up(rule, exec, sharded, state).wait();

// ---- sharding_of_a_lambda: Kernels of all shardings have one type for the numbers of rows.
// expected-error: global_rows\(rank, rows, ranks\) of a sharding returns a ferry::shard_rows
struct reversed : first_rank {
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t rows, int) const { return {rows - 1, -1}; }
#else
  [[nodiscard]] auto global_rows(int, std::int64_t rows, int) const {
    return [rows](std::int64_t place) { return rows - 1 - place; };
  }
#endif
};

void refused() {
  const ferry::sharded_table<float, ferry::mapped_space, reversed> shards("t", comm, 9, 4);
  static_cast<void>(shards.owner(3));
}

// ---- sharding_with_memory: The bytes of a vector are an address, which is another one on each rank.
// expected-error: One that holds memory has a std::uint64_t digest\(\) instead, and no in_kernels
struct listed : first_rank {
  std::vector<int> ranks_of_rows;
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] std::uint64_t digest() const { return ranks_of_rows.size(); }
#endif
};

void refused() {
  const ferry::sharded_table<float, ferry::mapped_space, listed> shards("t", comm, 9, 4);
  static_cast<void>(shards.rows());
}

// ---- sharding_without_name: The name of a sharding stands in messages.
// expected-error: a sharding has a static constexpr std::string_view name and a static constexpr bool replicates
struct without_name : first_rank {
#ifndef FERRY_XFAIL_FIXED
  static constexpr int name = 0;
#endif
};

void refused() {
  const ferry::sharded_table<float, ferry::mapped_space, without_name> shards("t", comm, 9, 4);
  static_cast<void>(shards.rows());
}

// ---- sharding_without_owner: A row has a rank.
// expected-error: a sharding has check\(ranks\), int owner\(row, rows, ranks\)
struct without_owner : first_rank {
#ifndef FERRY_XFAIL_FIXED
  void owner() const {}
#endif
};

void refused() {
  const ferry::sharded_table<float, ferry::mapped_space, without_owner> shards("t", comm, 9, 4);
  static_cast<void>(shards.rows());
}

// ---- step_bags_of_sharded_quantized: Owners combine the gradients of bags for rows of numbers.
// expected-error: step_bags trains a sharded_table of numbers
// legal: auto& trained = sharded;
auto& trained = coded_shards;
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, trained);
ferry::step_bags(exec, rule, trained, state, indices, 2, batch).wait();

// ---- step_sharded_tables_of_maxima: Positions of maxima belong to one table.
// expected-error: under pooling::max call it once for each table
std::vector<decltype(ferry::optim::make_state(rule, sharded))> states;
const auto tables = ferry::for_each_table(sharded, sharded_second);
// legal: ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::sum{}).wait();
ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::max{}).wait();

// ---- step_sharded_tables_of_plain_states: Each shard has a state of its own.
// expected-error: so their states must be those of sharded tables
// legal: std::vector<decltype(ferry::optim::make_state(rule, sharded))> states;
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
ferry::step_bags(exec, rule, ferry::for_each_table(sharded, sharded_second), states, indices, offsets, batch)
    .wait();

// ---- step_sharded_tables_with_weight_gradients: Those need the rows of each table before its step.
// expected-error: step_bags on several tables writes no gradients of weights
const std::vector<float> weights{1, 2, 3};
[[maybe_unused]] std::vector<float> weight_grads(3);
std::vector<decltype(ferry::optim::make_state(rule, sharded))> states;
const auto tables = ferry::for_each_table(sharded, sharded_second);
// legal: ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, weights).wait();
ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, weights, weight_grads).wait();

// ---- step_tables_of_sharded_states: A sharded table is stepped by itself.
// expected-error: their states must not be those of sharded tables
// legal: std::vector<decltype(ferry::optim::make_state(rule, table))> states;
std::vector<decltype(ferry::optim::make_state(rule, sharded))> states;
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();

// ---- unique_of_sharded_table: The rows of such a table lie on several devices.
// expected-error: unique counts the rows of one batch on its device
// legal: static_cast<void>(ferry::unique(exec, indices, static_cast<std::int64_t>(sharded.rows())));
static_cast<void>(ferry::unique(exec, indices, sharded));

// ---- two_reduce_policies: A sum has one order.
// expected-error: at most one reduce policy may be given
// legal: ferry::scatter_add(exec, sharded, indices, batch, ferry::reduce::by_rank{}).wait();
ferry::scatter_add(exec, sharded, indices, batch, ferry::reduce::by_rank{}, ferry::reduce::in_order{}).wait();
