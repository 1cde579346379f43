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

// ---- bag_grads_of_a_sharded_plan: The bags of a row may lie on several ranks.
// expected-first-error: bag_grads is called as bag_grads\(plan, offsets, pooled_grads, pooling
// most-lines: 20
using exec_space = Kokkos::DefaultExecutionSpace;

void refused(const exec_space& exec, [[maybe_unused]] const ferry::row_plan& plan,
             [[maybe_unused]] const ferry::sharded_plan<exec_space>& sharded_plan,
             ferry::tensor<float, ferry::mapped_space>& pooled) {
  const std::vector<std::int64_t> offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::clip_grad_norm(
      exec, 1.0, ferry::optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})));
#else
  static_cast<void>(ferry::optim::clip_grad_norm(
      exec, 1.0, ferry::optim::bag_grads(sharded_plan, offsets, pooled, ferry::pooling::sum{})));
#endif
}

// ---- cached_table_of_sharded_table: Its rows lie on several ranks.
// expected-errors: 2 or another cached_table has no cache
// most-lines: 30
const auto world = ferry::communicator::threads(1);
ferry::sharded_table<float, ferry::mapped_space> sharded("table", world, 10, 4);
#ifdef FERRY_XFAIL_FIXED
const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
#else
const ferry::cached_table hot(sharded, ferry::cache::first{.rows = 2});
const ferry::cached_table cold(exec, table, ferry::cache::first{.rows = 2});
#endif

// ---- catch_up_of_sharded_quantized: Quantized rows lose what a step without a gradient changes.
// expected-error: catch_up is for tables of floating-point numbers
const auto comm = ferry::communicator::threads(2);
// legal: ferry::sharded_table<float, ferry::pageable_space> table("table", comm, 2, 32);
ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 2, 32);
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, table);
ferry::catch_up(exec, rule, table, state).wait();

// ---- checkpoint_of_another_sharded_state: A rule and the sharded state of another one.
// expected-error: a checkpoint needs the state that make_state made for this optimizer
void refused(ferry::io::checkpoint& run, const ferry::communicator& comm) {
  ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4);
  ferry::optim::adam adam;
  [[maybe_unused]] ferry::optim::adamw decoupled;
  auto state = ferry::optim::make_state(adam, table);
  // legal: run.add("adam", adam, state);
  run.add("adam", decoupled, state);
}

// ---- communicator_of_a_number_of_devices: A rank has a device of its own choice.
// expected-first-error: communicator::devices takes the ids of devices
// most-lines: 20
// legal: const auto comm = ferry::communicator::devices({0, 1});
const auto comm = ferry::communicator::devices(2);

// ---- for_each_table_of_sharded_quantized: Owners pool and train rows of numbers.
// expected-errors: 2 for_each_table takes tables of one element type in one memory space
// most-lines: 30
const auto comm = ferry::communicator::threads(2);
ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 32);
using quantized = ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space>;
[[maybe_unused]] quantized codes("codes", comm, 10, 32);
[[maybe_unused]] std::vector<quantized> range;
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::for_each_table(table));
#else
static_cast<void>(ferry::for_each_table(codes));
static_cast<void>(ferry::for_each_table(range));
#endif

// ---- gather_with_a_sharded_plan: Such a plan has the routes of a batch between ranks.
// expected-error: a sharded_plan is for verbs on one sharded table; give this one the indices
using exec_space = Kokkos::DefaultExecutionSpace;

void refused(const exec_space& exec, [[maybe_unused]] const ferry::sharded_plan<exec_space>& plan) {
  const ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> out("out", 3, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2, 3};
  // legal: ferry::gather(exec, table, indices, out).wait();
  ferry::gather(exec, table, plan, out).wait();
}

// ---- init_of_sharded_quantized: Initial values are numbers, which quantize encodes.
// expected-error: init fills tables of numbers; initialise a sharded_table of them, and quantize it
struct sum {
  KOKKOS_FUNCTION double operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<double>(row + column);
  }
};

void refused() {
  const auto comm = ferry::communicator::threads(2);
  // legal: ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 2, 32);
  ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space> table("table", comm, 2, 32);
  ferry::init::zeros(exec, table);
  ferry::init::constant(exec, table, 1);
  ferry::init::uniform(exec, table, -1, 1, 5);
  ferry::init::normal(exec, table, 0, 1, 5);
  ferry::init::custom(exec, table, sum{});
}

// ---- peer_of_a_host_sharding: Kernels find the owners of rows, so they call the functions of the sharding.
// expected-error: path::peer finds the owners of rows in kernels
namespace xfail_sharding {

struct all_on_first {
  static constexpr std::string_view name = "all_on_first";
  static constexpr bool replicates = false;
#ifdef FERRY_XFAIL_FIXED
  static constexpr bool in_kernels = true;
#endif
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
};

}  // namespace xfail_sharding

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding::all_on_first>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
  ferry::gather(exec, table, indices, batch, ferry::path::peer{}).wait();
}

// ---- peer_of_a_sharded_scatter: Owners write their rows themselves, in the order of the ranks.
// expected-error: path::peer reads the shards of a sharded_table, so it serves gather from one alone
void refused(const Kokkos::DefaultExecutionSpace& exec,
             ferry::sharded_table<float, ferry::mapped_space>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
  // legal: ferry::scatter(exec, table, indices, batch).wait();
  ferry::scatter(exec, table, indices, batch, ferry::path::peer{}).wait();
}

// ---- peer_of_an_ordinary_table: An ordinary table has no shards of other ranks.
// expected-error: path::peer reads the shards of a sharded_table
const std::vector<int> indices{1, 2, 3};
// legal: ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
ferry::gather(exec, table, indices, batch, ferry::path::peer{}).wait();

// ---- peer_with_a_sharded_plan
// A sharded_plan sorts what travels to the owners; path::peer reads by the rows of the batch.
// expected-error: path::peer takes indices or a row_plan
void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, ferry::make_plan(exec, indices, 10), batch, ferry::path::peer{}).wait();
#else
  ferry::gather(exec, table, ferry::make_plan(exec, indices, table), batch, ferry::path::peer{}).wait();
#endif
}

// ---- row_prefetcher_of_sharded_table: Kernels do not dereference rows of other ranks.
// expected-errors: 1 a row_prefetcher reads rows of a table that kernels dereference
// most-lines: 20
const auto world = ferry::communicator::threads(1);
ferry::sharded_table<float, ferry::mapped_space> sharded("table", world, 10, 4);
// legal: ferry::row_prefetcher batches(exec, table, ferry::samples_of(indices), {.batch = 2});
ferry::row_prefetcher batches(exec, sharded, ferry::samples_of(indices), {.batch = 2});

// ---- scatter_add_to_sharded_quantized: A quantized row is replaced or trained as a whole.
// expected-error: scatter_add adds to rows of numbers
const std::vector<int> ids{0};
const auto comm = ferry::communicator::threads(2);
const ferry::tensor<float, ferry::pageable_space> values("values", 1, 32);
ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 1, 32);
// legal: const ferry::optim::sgd rule;
// legal: auto state = ferry::optim::make_state(rule, table);
// legal: ferry::scatter(exec, table, ids, values).wait();
// legal: ferry::step(exec, rule, table, state, ids, values).wait();
ferry::scatter_add(exec, table, ids, values).wait();

// ---- sharded_all_gather_text: A string owns memory that other ranks can't read.
// expected-error: communicator::all_gather sends the bytes of a value, so it must be trivially copyable
void refused(const ferry::communicator& comm) {
  // legal: (void)comm.all_gather(std::string("here").size());
  (void)comm.all_gather(std::string("here"));
}

// ---- sharded_all_reduce_structs: Structs can be moved, but not added.
// expected-error: all_reduce adds, so the elements must be numbers
struct pair_of_numbers {
  float first, second;
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec, const ferry::communicator& comm,
             [[maybe_unused]] ferry::tensor<pair_of_numbers, ferry::mapped_space>& pairs,
             [[maybe_unused]] ferry::tensor<float, ferry::mapped_space>& numbers) {
  // legal: ferry::all_reduce(exec, comm, numbers).wait();
  ferry::all_reduce(exec, comm, pairs).wait();
}

// ---- sharded_copy_of_codes: A copy moves elements as they are.
// expected-errors: 1 copy moves numbers, or codes and scales, as they are
using exec_space = Kokkos::DefaultExecutionSpace;
using numbers = ferry::sharded_table<float, ferry::mapped_space>;
using codes = ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space>;

void refused(const exec_space& exec, numbers& table, codes& quantized) {
#ifdef FERRY_XFAIL_FIXED
  ferry::quantize(exec, table, quantized).wait();
#else
  ferry::copy(exec, table, quantized).wait();
  ferry::copy(exec, quantized, table).wait();
#endif
}

// ---- sharded_devices_of_another_space: As for the instances of the ranks.
// expected-error: communicator::devices makes instances of Kokkos::DefaultExecutionSpace
struct another_space {};

void refused() {
  // legal: static_cast<void>(ferry::communicator::devices({0}));
  static_cast<void>(ferry::communicator::devices<another_space>({0}));
}

// ---- sharded_exec_of_another_space
// The ranks of a group of devices have instances of the space that has devices.
// expected-error: communicator::exec gives instances of Kokkos::DefaultExecutionSpace
struct other_space {};

void refused(const ferry::communicator& comm) {
  // legal: static_cast<void>(comm.exec(0));
  static_cast<void>(comm.exec<other_space>(0));
}

// ---- sharded_plan_of_another_backend: A sharded plan keeps what its execution space has sorted.
// expected-error: a sharded_plan serves verbs of the execution space that made it
// legal: using planner = Kokkos::DefaultExecutionSpace;
struct planner {};

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table,
             const ferry::sharded_plan<planner>& plan, ferry::tensor<float, ferry::mapped_space>& out) {
  ferry::gather(exec, table, plan, out).wait();
}

// ---- sharded_records_in_two_spaces: A record lies in one memory space, also in a shard.
// expected-error: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space
using ferry::quantization::rowwise_int8;
const auto comm = ferry::communicator::threads(2);
#ifdef FERRY_XFAIL_FIXED
const ferry::sharded_quantized_table<rowwise_int8, ferry::pageable_space> table("table", comm, 10, 32);
#else
const ferry::sharded_quantized_table<rowwise_int8, ferry::pageable_space, ferry::mapped_space> table("table",
                                                                                                     comm, 10,
                                                                                                     32);
#endif

// ---- sharded_run_argument
// The function of a run gets the number of its rank and an execution space instance, and nothing else.
// expected-error: communicator::run needs a function of the rank and its execution space instance
void refused(const ferry::communicator& comm) {
  // legal: comm.run([](int) {});
  comm.run([](int, int) {});
}

// ---- sharded_table_of_quantization
// A sharded table has elements; rows of codes and scales have a table of their own.
// expected-error: quantized rows are spread as a sharded_quantized_table
using q = ferry::quantization::mxfp8;
const auto comm = ferry::communicator::threads(2);
// legal: const ferry::sharded_quantized_table<q, ferry::pageable_space> table("table", comm, 10, 32);
const ferry::sharded_table<q, ferry::pageable_space> table("table", comm, 10, 32);

// ---- sharded_table_without_label: A sharded table has a label and a communicator.
// expected-errors: 2 are its label, its communicator and its extents
#ifdef FERRY_XFAIL_FIXED
const ferry::sharded_table<float, ferry::pageable_space> table("table", ferry::communicator::threads(2), 10,
                                                               4);
#else
const ferry::sharded_table<float, ferry::pageable_space> table(ferry::communicator::threads(2), 10, 4);
const ferry::sharded_table<float, ferry::pageable_space> lone("table", 10, 4);
#endif

// ---- sharded_tables_by_plan: A plan knows the rows of one table, also if that is sharded.
// expected-error: a sharded_plan is for verbs on one sharded table; give this one the indices
using exec_space = Kokkos::DefaultExecutionSpace;
using table_type = ferry::sharded_table<float, ferry::mapped_space>;

void refused(const exec_space& exec, const table_type& table, const table_type& second,
             [[maybe_unused]] const ferry::sharded_plan<exec_space>& plan) {
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 8);
  // legal: ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
  ferry::gather_bags(exec, ferry::for_each_table(table, second), plan, offsets, pooled).wait();
}

// ---- sharded_tables_of_temporary: The list refers to its tables.
// expected-error: for_each_table refers to sharded tables
const auto comm = ferry::communicator::threads(2);
using table_type = ferry::sharded_table<float, ferry::mapped_space>;
// legal: table_type table("table", comm, 10, 4);
// legal: static_cast<void>(ferry::for_each_table(table));
static_cast<void>(ferry::for_each_table(table_type("table", comm, 10, 4)));

// ---- sharded_tables_of_two_types: One launch finds the owners of all rows.
// expected-first-error: for_each_table takes sharded tables of one type
const auto comm = ferry::communicator::threads(2);
ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4);
// legal: ferry::sharded_table<float, ferry::mapped_space> second("second", comm, 9, 3);
ferry::sharded_table<float, ferry::mapped_space, ferry::sharding::block> second("second", comm, 9, 3);
static_cast<void>(ferry::for_each_table(table, second));

// ---- sharded_verbs_out_of_order: The order of arguments is that of verbs on ordinary tables.
// expected-errors: 5 policies such as path::direct|the instance of the execution space comes first
// most-lines: 100
using exec_space = Kokkos::DefaultExecutionSpace;
using table_type = ferry::sharded_table<float, ferry::device_space>;

void refused(const exec_space& exec, table_type& table) {
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 2};
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4), pooled("pooled", 1, 4);
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter_add(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}).wait();
  ferry::catch_up(exec, rule, table, state).wait();
#else
  ferry::gather(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::scatter(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::scatter_add(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::gather_bags(exec, table, indices, offsets, ferry::pooling::sum{}, pooled).wait();
  ferry::catch_up(rule, exec, table, state).wait();
#endif
}

// ---- sharding_of_a_lambda: Kernels of all shardings have one type for the numbers of rows.
// expected-error: global_rows\(rank, rows, ranks\) of a sharding returns a ferry::shard_rows
namespace xfail_sharding_of_a_lambda {

struct reversed {
  static constexpr std::string_view name = "reversed";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t rows, int) const {
    return rows - 1 - row;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t rows, int) const { return {rows - 1, -1}; }
#else
  [[nodiscard]] auto global_rows(int, std::int64_t rows, int) const {
    return [rows](std::int64_t place) { return rows - 1 - place; };
  }
#endif
};

}  // namespace xfail_sharding_of_a_lambda

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_of_a_lambda::reversed> table(
      "t", world, 9, 4);
  static_cast<void>(table.owner(3));
}

// ---- sharding_with_memory: The bytes of a vector are an address, which is another one on each rank.
// expected-error: One that holds memory has a std::uint64_t digest\(\) instead, and no in_kernels
namespace xfail_sharding_with_memory {

struct listed {
  std::vector<int> ranks_of_rows;

  static constexpr std::string_view name = "listed";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const { return row; }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] std::uint64_t digest() const { return ranks_of_rows.size(); }
#endif
};

}  // namespace xfail_sharding_with_memory

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_with_memory::listed> table("t", world,
                                                                                                   9, 4);
  static_cast<void>(table.rows());
}

// ---- sharding_without_name
// expected-error: a sharding has a static constexpr std::string_view name and a static constexpr bool replicates
namespace xfail_sharding_without_name {

struct first_rank {
#ifdef FERRY_XFAIL_FIXED
  static constexpr std::string_view name = "first_rank";
#endif
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const { return row; }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
};

}  // namespace xfail_sharding_without_name

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_without_name::first_rank> table(
      "t", world, 9, 4);
  static_cast<void>(table.rows());
}

// ---- sharding_without_owner
// expected-error: a sharding has check\(ranks\), int owner\(row, rows, ranks\)
namespace xfail_sharding_without_owner {

struct first_rank {
  static constexpr std::string_view name = "first_rank";
  static constexpr bool replicates = false;
  void check(int) const {}
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
#endif
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const { return row; }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
};

}  // namespace xfail_sharding_without_owner

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_without_owner::first_rank> table(
      "t", world, 9, 4);
  static_cast<void>(table.rows());
}

// ---- step_bags_of_sharded_quantized: Owners combine the gradients of bags for rows of numbers.
// expected-error: step_bags trains a sharded_table of numbers
const std::vector<int> ids{0, 1};
const auto comm = ferry::communicator::threads(2);
const ferry::tensor<float, ferry::pageable_space> grads("grads", 1, 32);
#ifdef FERRY_XFAIL_FIXED
ferry::sharded_table<float, ferry::pageable_space> table("table", comm, 2, 32);
#else
ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 2, 32);
#endif
const ferry::optim::sgd rule;
auto state = ferry::optim::make_state(rule, table);
ferry::step_bags(exec, rule, table, state, ids, 2, grads).wait();

// ---- step_sharded_tables_of_maxima: Positions of maxima belong to one table.
// expected-error: under pooling::max call it once for each table
const auto comm = ferry::communicator::threads(2);
ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4), second("second", comm, 9, 4);
const ferry::tensor<float, ferry::mapped_space> batch("batch", 1, 8);
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
const auto tables = ferry::for_each_table(table, second);
// legal: ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::sum{}).wait();
ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::max{}).wait();

// ---- step_sharded_tables_of_plain_states: Each shard has a state of its own.
// expected-error: so their states must be those of sharded tables
const auto comm = ferry::communicator::threads(2);
ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4), second("second", comm, 9, 4);
[[maybe_unused]] const ferry::tensor<float, ferry::mapped_space> plain("plain", 10, 4);
const ferry::tensor<float, ferry::mapped_space> batch("batch", 1, 8);
// legal: std::vector<decltype(ferry::optim::make_state(rule, table))> states;
std::vector<decltype(ferry::optim::make_state(rule, plain))> states;
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();

// ---- step_sharded_tables_with_weight_gradients: Those need the rows of each table before its step.
// expected-error: step_bags on several tables writes no gradients of weights
const auto comm = ferry::communicator::threads(2);
ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4), second("second", comm, 9, 4);
const ferry::tensor<float, ferry::mapped_space> batch("batch", 1, 8);
const std::vector<float> weights{1, 2, 3};
[[maybe_unused]] std::vector<float> weight_grads(3);
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
const auto tables = ferry::for_each_table(table, second);
// legal: ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, weights).wait();
ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, weights, weight_grads).wait();

// ---- step_tables_of_sharded_states: A sharded table is stepped by itself.
// expected-error: their states must not be those of sharded tables
[[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
#ifdef FERRY_XFAIL_FIXED
std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#else
using sharded = ferry::sharded_table<float, ferry::mapped_space>;
std::vector<decltype(ferry::optim::make_state(rule, std::declval<sharded&>()))> states;
#endif
ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();

// ---- unique_of_sharded_table: The rows of such a table lie on several devices.
// expected-error: unique counts the rows of one batch on its device
void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table) {
  const std::vector<std::int64_t> indices{1, 2, 2};
  // legal: static_cast<void>(ferry::unique(exec, indices, static_cast<std::int64_t>(table.rows())));
  static_cast<void>(ferry::unique(exec, indices, table));
}
