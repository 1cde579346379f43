// SPDX-License-Identifier: Apache-2.0
#include "distributed/bag_routes.hpp"
#include "distributed/faults.hpp"
#include "ranks/rank_program.hpp"
#include "support/process_space.hpp"

#include <ferry/distributed/shared/detail/rank_lanes.hpp>
#include <ferry/quantized.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// States of tables in process_space: the library holds those of its own memory spaces.
template <>
ferry::tensor<float, ferry_test::process_space> ferry::optim::detail::filled(
    const std::string& label, ferry::device placement, std::span<const std::size_t> extents, float value) {
  ferry::tensor<float, ferry_test::process_space> array(label, placement, extents);
  std::fill_n(array.data(), array.size(), value);
  return array;
}

namespace ferry_test {

namespace {

/// Memory of shards that kernels of other processes read.
using shared_space = std::conditional_t<ferry::HostExecutionSpace<exec_space>, process_space, device>;

/// The table of cases of tests/distributed, by processes.
void routes(const ferry::communicator& comm) {
  namespace dup = ferry::duplicates;
  route_suite suite{{comm}, std::mt19937_64(static_cast<unsigned>(comm.size()))};
  compare_writes<float, float, std::int64_t, device, all_shardings>(suite, "step", step_by_adam<>());
  compare_writes<float, float, std::int64_t, device, some_shardings>(suite, "scatter", scattering<>{});
  compare_writes<float>(suite, "step in host memory, reject", step_by_adam<ferry::nonfinite::reject>());
  compare_writes<double, double, std::int64_t, device>(suite, "scatter of doubles", scattering<>{});
  compare_writes<float>(suite, "scatter into host memory, mean", scattering<dup::mean>{});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter, first", scattering<dup::first>{});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter, reject", scattering<dup::reject>{},
                                                     {.repeats = false});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter, unique",
                                                     scattering<dup::assume_unique>{}, {.repeats = false});
  compare_writes<float, float, std::int64_t, device>(suite, "large scatter", scattering<>{}, {.scale = 25});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter_add", adding<>{});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter_add, any order",
                                                     adding<dup::sum_any_order>{}, {.whole_numbers = true});
  compare_writes<float, float, std::int64_t, device, one_sharding, true>(suite, "scatter_add by rank",
                                                                         adding<>{});
  compare_gathers<float, float, std::int64_t, shared_space>(suite, "gather");
  const ferry::optim::adam adam{.lr = 0.01};
  namespace pooling = ferry::pooling;
  constexpr ferry::bounds::check check{};
  compare_bags<float, float, std::int64_t, float, device, one_sharding>(suite, "bags, sum", adam,
                                                                        pooling::sum{}, check);
  compare_bags<float, float, std::int64_t, float, shared_space, one_sharding>(suite, "bags, mean", adam,
                                                                              pooling::mean{}, check);
  compare_bags<float, float, std::int64_t, float, shared_space, one_sharding>(suite, "bags, max", adam,
                                                                              pooling::max{}, check);
  compare_lists<float, float, std::int64_t, shared_space, all_shardings>(suite, "lists", adam,
                                                                         pooling::mean{}, check);
  compare_lists<float, float, std::int64_t, host, one_sharding>(suite, "lists in host memory", adam,
                                                                pooling::sum{}, check);
  if (comm.size() > 1) check_faults(comm);
}

/// Gathers of quantized rows, whose codes and scales kernels read in the shards of all ranks.
template <class Quantization, class Space>
void gathers_of_codes(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 90, width = 64;
  std::mt19937_64 random(23);
  ferry::tensor<float, host> values("values", rows, width);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] = static_cast<float>(random() % 4001) / 500 - 4;
  ferry::sharded_quantized_table<Quantization, Space> big("q", comm, rows, width);
  ferry::quantized_tensor<Quantization, host> table("q", rows, width);
  ferry::quantize(exec, values, big).wait();
  ferry::quantize(exec, values, table).wait();
  std::vector<std::int64_t> ids(40 + static_cast<std::size_t>(world_rank));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % rows);
  ferry::tensor<float, Space> out("out", ids.size(), width);
  ferry::tensor<float, host> read("read", ids.size(), width), same("same", ids.size(), width);
  ferry::gather(exec, table, ids, same).wait();
  const auto check = [&](const auto& named, auto... policies) {
    ferry::init::constant(exec, out, -5);
    ferry::gather(exec, big, named, out, policies...).wait();
    ferry::copy(exec, out, read).wait();
    expect(std::equal(read.data(), read.data() + read.size(), same.data()),
           "rows of codes, " + std::string(Space::name));
  };
  check(ids);
  check(ids, ferry::path::exchange{});
  check(ferry::make_plan(exec, ids, big));
}

/// Norms by the lists of a plan that kernels of all ranks have made.
void norms(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 80;
  std::mt19937_64 random(29);
  const ferry::sharded_table<float, device> big("w", comm, rows, width);
  const batches<float> batch(random, comm.size(), rows, 200);
  const auto plan = ferry::make_plan(exec, batch.indices_of(world_rank), big);
  const auto whole = ferry::make_plan(exec, batch.rows, rows);
  const auto& mine = batch.values_of(world_rank);
  const auto& whole_values = batch.whole;
  const double norm = ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(plan, mine)).wait();
  const double expected =
      ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(whole, whole_values)).wait();
  expect(std::abs(norm - expected) <= 1e-6 * expected, "the norm of the ranks' gradients");
}

/// A group whose rank pauses after a meeting.
class pausing_group final : public forwarding_transport {
 public:
  using forwarding_transport::forwarding_transport;
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    inner().all_gather(rank, note, mine, theirs);
    if (const auto act = std::exchange(pause, nullptr)) act();
  }
  std::function<void()> pause;
};

/// The last rank pauses before it reads the batches of the others. They give up, and write other batches: it
/// still reads those of its verb.
void leave_early(const exec_space& exec, const group_maker& make_group) {
  const auto ends = make_group({.deadline = std::chrono::seconds(30)});
  const auto group =
      std::make_shared<pausing_group>(make_group({.deadline = std::chrono::milliseconds(2000)}));
  const ferry::communicator comm(group);
  constexpr std::size_t rows = 120, width = 4;
  const bool last = world_rank == comm.size() - 1;
  ferry::sharded_table<float, device> big("w", comm, rows, width), small("small", comm, rows, width);
  ferry::init::zeros(exec, big);
  std::vector<std::int64_t> ids;  // a row of each owner for each rank
  for (int owner = 0; owner < comm.size(); ++owner) ids.push_back(owner + world_rank * comm.size());
  ferry::tensor<float, device> values("values", ids.size(), width);
  const auto write = [&](auto& table, float value) {
    ferry::init::constant(exec, values, value);
    ferry::scatter_add(exec, table, ids, values).wait();
  };
  write(big, 1);  // opens the lanes
  if (last) group->pause = [&] { ends.barrier(); };
  const auto text = said<ferry::communication_error>([&] { write(big, 4); });
  if (!last) {
    expect(has(text, "2000 ms"), "a rank that pauses: " + text);
    for (int turn = 0; turn < 2; ++turn)
      expect(!said<ferry::communication_error>([&] { write(small, 7); }).empty(), "a broken group");
    ends.barrier();
  }
  if (last) {
    const auto shard = contents(exec, big.shard(world_rank));
    const auto named = static_cast<std::ptrdiff_t>(width) * comm.size();
    expect(std::count(shard.begin(), shard.end(), 5.F) == named &&
               std::count(shard.begin(), shard.end(), 0.F) == std::ssize(shard) - named,
           "batches of ranks that have left the verb");
  }
  ends.barrier();
}

/// A group that counts its meetings.
class counting_group final : public forwarding_transport {
 public:
  using forwarding_transport::forwarding_transport;
  int meetings = 0;
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    ++meetings;
    inner().all_gather(rank, note, mine, theirs);
  }
  void exchange(int rank, const ferry::detail::call_note& note,
                std::span<const ferry::detail::outgoing_part> targets,
                std::span<const ferry::detail::incoming_part> sources) override {
    ++meetings;
    inner().exchange(rank, note, targets, sources);
  }
};

/// Kernels find the maxima of bags in the shards of other processes, and show the shares: with as few meetings
/// as between threads. A rank with a bad index looks for none.
template <class Space>
void finds_maxima(const exec_space& exec, const group_maker& make_group) {
  const auto group = std::make_shared<counting_group>(make_group({.deadline = std::chrono::seconds(30)}));
  const ferry::communicator comm(group);
  constexpr std::size_t rows = 40, width = 4;
  ferry::sharded_table<float, Space> big("w", comm, rows, width);
  ferry::tensor<float, Space> table("w", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 9);
  ferry::init::uniform(exec, table, -1, 1, 9);
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state<device>(rule, big);
  auto plain = ferry::optim::make_state<device>(rule, table);
  std::vector<std::int64_t> ids, all_ids;
  for (int r = 0; r < comm.size(); ++r)
    for (std::int64_t p = 0; p < 12; ++p) {
      all_ids.push_back((p * 11 + r * 5) % static_cast<std::int64_t>(rows));
      if (r == world_rank) ids.push_back(all_ids.back());
    }
  const auto grads = on_device(exec, {}, std::vector<float>(3 * width, 0.25F), width);
  const auto all_grads = on_device(
      exec, {}, std::vector<float>(3 * width * static_cast<std::size_t>(comm.size()), 0.25F), width);
  const auto step_by = [&](const auto& named) {
    ferry::step_bags(exec, rule, big, state, named, 4, grads, ferry::pooling::max{}).wait();
  };
  const auto near = on_device(exec, {}, ids);
  const auto plan = ferry::make_plan(exec, near, big);
  for (int turn = 0; turn < 4; ++turn) {
    const int before = group->meetings;
    if (turn % 2 == 0)
      step_by(near);
    else
      step_by(plan);
    const int meetings = group->meetings - before;
    if (comm.size() > 1 && turn > 1)  // lanes are open
      expect(meetings == 3, "meetings of a step that finds maxima: " + std::to_string(meetings));
    ferry::step_bags(exec, rule, table, plain, all_ids, 4, all_grads, ferry::pooling::max{}).wait();
    expect(contents(exec, big) == contents(exec, table), "maxima found, turn " + std::to_string(turn));
  }
  auto bad = ids;
  if (world_rank == comm.size() - 1) bad.back() = static_cast<std::int64_t>(rows);
  const auto text = said<ferry::out_of_range>([&] { step_by(on_device(exec, {}, bad)); });
  expect(has(text, "index 40 at position 11"), "a bad index of bags: " + text);
  expect(contents(exec, big) == contents(exec, table) && state.steps() == 4, "bags after a refused batch");
}

/// A limit of this process is lower for a while.
template <auto Resource>
struct lower_limit {
  explicit lower_limit(rlim_t limit) {
    ::getrlimit(Resource, &before);
    const rlimit low{limit, before.rlim_max};
    ::setrlimit(Resource, &low);
  }
  lower_limit(const lower_limit&) = delete;
  lower_limit& operator=(const lower_limit&) = delete;
  ~lower_limit() { ::setrlimit(Resource, &before); }
  rlimit before{};
};
/// No more files: the process can neither make nor open a lane in host memory.
using few_files = lower_limit<RLIMIT_NOFILE>;
/// The number of the first file that this process would open. MPI polls those that it has.
rlim_t files_in_use() {
  const int file = ::dup(STDIN_FILENO);
  if (file >= 0) ::close(file);
  return file < 0 ? 4 : static_cast<rlim_t>(file);
}
/// Small files: the process can't make a lane. A write beyond the limit would end it.
using small_files = lower_limit<RLIMIT_FSIZE>;

enum class lack { none, files, bytes };

/// Scatters in a new group, the second of them while rank 0 lacks files; without positions there, if `reads`,
/// so that it needs no lane of its own. Returns the group.
ferry::communicator scatter_without(const exec_space& exec, const group_maker& make_group, lack lacking,
                                    bool reads) {
  const auto comm = make_group({.deadline = std::chrono::seconds(30)});
  constexpr std::size_t rows = 97, width = 5;
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::tensor<float, device> table("w", rows, width);
  ferry::init::zeros(exec, big);
  ferry::init::zeros(exec, table);
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 3; ++turn) {
    // The first one needs no lanes, the second larger ones than those that a group has at first.
    std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()));
    for (std::size_t& count : counts) count = turn == 0 ? 0 : 1000 + random() % 59000;
    if (turn == 1 && reads) counts[0] = 0;
    const batches<float> batch(random, counts, rows, true, width);
    ferry::tensor<float, device> values("values", batch.indices_of(world_rank).size(), width);
    ferry::copy(exec, batch.values_of(world_rank), values).wait();
    const auto near = on_device(exec, {}, batch.indices_of(world_rank));
    comm.barrier();
    {
      std::optional<few_files> few;
      std::optional<small_files> small;
      if (turn == 1 && world_rank == 0 && lacking == lack::files) few.emplace(files_in_use());
      if (turn == 1 && world_rank == 0 && lacking == lack::bytes) small.emplace(4096);
      ferry::scatter(exec, big, near, values).wait();
    }
    ferry::scatter(exec, table, batch.rows, batch.whole).wait();
    expect(contents(exec, big) == contents(exec, table), "a rank that lacks lanes");
  }
  return comm;
}

/// The lanes of a communicator of processes; null before it has any.
ferry::detail::rank_lanes* lanes_of(const ferry::communicator& comm) {
  return static_cast<ferry::detail::rank_lanes*>(comm.group()->lanes().get());
}

/// A plan whose lists kernels have made, when the lanes cease to serve: on one rank, then on all.
void scatter_after_lanes(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 97, width = 5;
  std::mt19937_64 random(41);
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::tensor<float, device> table("w", rows, width);
  ferry::init::zeros(exec, big);
  ferry::init::zeros(exec, table);
  const batches<float> batch(random, comm.size(), rows, 300, true, width);
  const auto plan = ferry::make_plan(exec, batch.indices_of(world_rank), big);
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 2 || (turn == 1 && world_rank == 0)) lanes_of(comm)->close("the test closes them");
    ferry::scatter_add(exec, big, plan, batch.values_of(world_rank)).wait();
    ferry::scatter_add(exec, table, batch.rows, batch.whole).wait();
    expect(contents(exec, big) == contents(exec, table), "a plan that is older than the end of lanes");
  }
}

void lacks(const exec_space& exec, const group_maker& make_group) {
  const auto served = scatter_without(exec, make_group, lack::none, false);
  const auto* const lanes = lanes_of(served);
  if (served.size() == 1) {
    expect(lanes == nullptr, "a group of one has no lanes");
    return;
  }
  expect(lanes != nullptr && lanes->serve(), "lanes of processes of one machine");
  bool is_open = lanes != nullptr;
  for (int r = 0; is_open && r < served.size(); ++r) is_open = r == world_rank || lanes->data(r) != nullptr;
  expect(is_open, "the lanes of all others are open");
  scatter_after_lanes(exec, served);
  expect(lanes->data(0) == nullptr && lanes->data(1) == nullptr, "memory of lanes that have ended");
  leave_early(exec, make_group);
  if constexpr (ferry::HostExecutionSpace<exec_space>) {
    const auto words = [&](const ferry::communicator& comm) {
      const ferry::sharded_table<float, device> big("w", comm, 10, 2);
      return ferry::explain(exec, big, std::vector<std::int64_t>{1, 2}).to_string();
    };
    std::string text;
    for (const lack lacking : {lack::files, lack::bytes}) {
      text = words(scatter_without(exec, make_group, lacking, false));
      expect(has(text, "writes: kernels of the owners"),
             "lanes after a rank had no memory for its own: " + text);
    }
    text = words(scatter_without(exec, make_group, lack::files, true));
    expect(has(text, "packed messages") && has(text, "rank 0 can't read the memory of the others"),
           "lanes that rank 0 could not open: " + text);
  }
}

}  // namespace

void batches_in_lanes(const ferry::communicator& comm, const group_maker& make_group) {
  const exec_space exec;
  routes(comm);
  finds_maxima<shared_space>(exec, make_group);
  norms(exec, comm);
  gathers_of_codes<ferry::quantization::mxfp8, shared_space>(exec, comm);
  gathers_of_codes<ferry::quantization::rowwise_int8, shared_space>(exec, comm);
  lacks(exec, make_group);
}

void write_until_killed(const ferry::communicator& comm, int killed) {
  const exec_space exec;
  constexpr std::size_t rows = 5000, columns = 32, count = 20000;
  ferry::sharded_table<float, device> big("w", comm, rows, columns);
  ferry::sharded_table<float, shared_space> read("read", comm, rows, columns);
  ferry::init::zeros(exec, big);
  ferry::init::uniform(exec, read, -1, 1, 3);
  const ferry::optim::adam rule{.lr = 0.01};
  auto state = ferry::optim::make_state(rule, big);
  auto state_of_read = ferry::optim::make_state<device>(rule, read);
  std::vector<std::int64_t> ids(count);
  std::mt19937_64 random(static_cast<unsigned>(world_rank));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % rows);
  const auto near = on_device(exec, {}, ids);
  ferry::tensor<float, device> values("values", count, columns);
  ferry::init::constant(exec, values, 0.5);
  ferry::tensor<float, device> grads("grads", count / 4, columns);
  ferry::init::constant(exec, grads, 0.25);
  const auto write = [&] {
    ferry::scatter(exec, big, near, values).wait();
    ferry::step(exec, rule, big, state, near, values).wait();
    ferry::step_bags(exec, rule, read, state_of_read, near, 4, grads, ferry::pooling::max{}).wait();
  };
  for (int turn = 0; turn < 3; ++turn) write();
  if (world_rank == killed)
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(20000 + ::getpid() % 97 * 311));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  const auto text = said<ferry::communication_error>([&] {
    for (;;) write();
  });
  expect(!text.empty(), "a rank killed while it wrote");
}

}  // namespace ferry_test
