// SPDX-License-Identifier: Apache-2.0
#include "distributed/bag_routes.hpp"
#include "distributed/faults.hpp"
#include "ranks/rank_program.hpp"
#include "support/process_space.hpp"

#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/quantized.hpp>

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

/// A group that counts its meetings and exchanges.
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
                std::span<const ferry::detail::incoming_part> sources,
                ferry::detail::device_lane* lane) override {
    ++meetings;
    inner().exchange(rank, note, targets, sources, lane);
  }
};

/// Kernels find the maxima of bags in the shards of other processes: one exchange more than between threads
/// brings the shares. A rank with a bad index looks for none.
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
    if (comm.size() > 1 && turn > 1)  // windows are open
      expect(meetings == 4, "meetings of a step that finds maxima: " + std::to_string(meetings));
    ferry::step_bags(exec, rule, table, plain, all_ids, 4, all_grads, ferry::pooling::max{}).wait();
    expect(contents(exec, big) == contents(exec, table), "maxima found, turn " + std::to_string(turn));
  }
  auto bad = ids;
  if (world_rank == comm.size() - 1) bad.back() = static_cast<std::int64_t>(rows);
  const auto text = said<ferry::out_of_range>([&] { step_by(on_device(exec, {}, bad)); });
  expect(has(text, "index 40 at position 11"), "a bad index of bags: " + text);
  expect(contents(exec, big) == contents(exec, table) && state.steps() == 4, "bags after a refused batch");
}

/// Parts pass through windows of the processes, which grow, and of which one is not shared at first.
void windows(const ferry::communicator& comm) {
  if (comm.size() == 1) return;
  const Kokkos::DefaultHostExecutionSpace exec;
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::optional<ferry::detail::rank_windows> windows;
  for (int round = 0; round < 12; ++round) {
    const bool refuses = round == 0 && world_rank == 1;
    if (round < 2) windows.emplace(comm.size());
    const std::size_t count = std::size_t{1} << (2 * round);  // for each rank
    std::vector<std::uint32_t> departures(ranks * count), arrivals(ranks * count, 7);
    std::vector<ferry::detail::outgoing_part> outgoing(ranks);
    std::vector<ferry::detail::incoming_part> incoming(ranks);
    const auto number = [&](std::size_t sender, std::size_t receiver) {
      return static_cast<std::uint32_t>(round * 10000) + static_cast<std::uint32_t>(sender * 100 + receiver);
    };
    for (std::size_t r = 0; r < ranks; ++r) {
      std::fill_n(departures.data() + r * count, count, number(static_cast<std::size_t>(world_rank), r));
      outgoing[r] = {reinterpret_cast<const std::byte*>(departures.data() + r * count), count * 4};
      incoming[r] = {reinterpret_cast<std::byte*>(arrivals.data() + r * count), count * 4};
    }
    ferry::detail::collective call(comm, ferry::detail::call_note("windows"));
    process_space::refuses = refuses;
    const bool moved =
        ferry::detail::exchange_by_windows<process_space>(call, *windows, exec, exec, outgoing, incoming);
    process_space::refuses = false;
    bool well = moved == (round != 0) && windows->serve() == moved &&
                has(windows->why_not(), "rank 1: it can't share memory") == !moved;
    for (std::size_t r = 0; well && moved && r < ranks; ++r)
      for (std::size_t i = 0; i < count; ++i)
        well = well && arrivals[r * count + i] == number(r, static_cast<std::size_t>(world_rank));
    expect(well, "windows, round " + std::to_string(round));
  }
  comm.barrier();
}

}  // namespace

void verbs(const ferry::communicator& comm, const group_maker& make_group) {
  const exec_space exec;
  routes(comm);
  finds_maxima<shared_space>(exec, make_group);
  norms(exec, comm);
  gathers_of_codes<ferry::quantization::mxfp8, shared_space>(exec, comm);
  gathers_of_codes<ferry::quantization::rowwise_int8, shared_space>(exec, comm);
  windows(comm);
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
