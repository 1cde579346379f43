// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::instances_test {

// Several instances on the same tensors, with nobody but the verbs to order them.

constexpr std::size_t rows = 20000;
constexpr std::size_t width = 32;

std::vector<float> all_of(float value) { return std::vector<float>(rows * width, value); }

std::vector<std::int64_t> every_row(std::size_t shift = 0) {
  std::vector<std::int64_t> result(rows);
  for (std::size_t i = 0; i < rows; ++i) result[i] = static_cast<std::int64_t>((i + shift) % rows);
  return result;
}

/// On a host backend all are the default instance, which does one verb after the other.
std::vector<exec_space> instances(std::size_t count) {
  if constexpr (ferry::detail::is_host_exec<exec_space>)
    return std::vector<exec_space>(count);
  else
    return Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>(count, 1));
}

TEMPLATE_TEST_CASE("a reader comes after other instances' writes, a writer after their reads", "[instances]",
                   ferry::device_space, ferry::mapped_space, ferry::pinned_space) {
  const auto exec = instances(3);
  const ferry::path::direct direct;
  const ferry::duplicates::assume_unique unique;
  const auto ones = make<ferry::device_space>("ones", rows, width, all_of(1));
  const auto tens = make<ferry::device_space>("tens", rows, width, all_of(10));
  const auto ids = make<ferry::device_space>("which", every_row());
  for (int round = 0; round < 5; ++round) {
    auto table = make<TestType>("table", rows, width, all_of(0));
    ferry::tensor<float, ferry::device_space> first("first", rows, width), second("second", rows, width);
    for (int i = 0; i < 10; ++i) ferry::scatter_add(exec[0], table, ids, ones, direct, unique).detach();
    ferry::gather(exec[1], table, ids, first, direct).detach();
    ferry::scatter(exec[2], table, ids, tens, direct, unique).detach();
    ferry::gather(exec[1], table, ids, second, direct).detach();
    for (int i = 0; i < 5; ++i) ferry::scatter_add(exec[0], table, ids, ones, direct, unique).detach();
    auto last = ferry::gather<ferry::pinned_space>(exec[1], table, ids, direct);
    CHECK(take(last.get()) == all_of(15));
    CHECK(take(first) == all_of(10));
    CHECK(take(second) == all_of(10));
  }
}

TEST_CASE("a workspace goes from plan to plan, whatever their instances", "[instances][workspace]") {
  const auto exec = instances(2);
  std::vector<float> content(rows * width);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<float>(i / width);
  const auto table = make<ferry::mapped_space>("table", rows, width, content);
  const auto plain = make<ferry::device_space>("plain", every_row());
  const auto shifted = make<ferry::device_space>("shifted", every_row(1));
  ferry::tensor<std::byte, ferry::device_space> workspace("workspace",
                                                          ferry::plan_workspace_bytes(exec[0], rows, rows));
  std::vector<ferry::tensor<float, ferry::device_space>> got;
  for (int i = 0; i < 8; ++i) got.emplace_back("got", rows, width);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto plan = ferry::make_plan(exec[i % 2], i % 2 == 0 ? plain : shifted, rows, workspace);
    ferry::gather(exec[(i + 1) % 2], table, plan, got[i], ferry::path::direct{}).detach();
  }
  for (const auto& instance : exec) instance.fence("ferry_test::instances");
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto values = take(got[i]);
    CHECK(values.front() == (i % 2 == 0 ? 0.0f : 1.0f));
    CHECK(values.back() == (i % 2 == 0 ? static_cast<float>(rows - 1) : 0.0f));
  }
}

TEST_CASE("indices may be overwritten by another instance after the verbs that read them", "[instances]") {
  const auto exec = instances(2);
  std::vector<float> content(rows * width);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<float>(i / width);
  const auto table = make<ferry::mapped_space>("table", rows, width, content);
  const auto shifted = make<ferry::device_space>("shifted", every_row(1));
  const auto plain = make<ferry::device_space>("plain", every_row());
  auto ids = make<ferry::device_space>("which", every_row());
  std::vector<ferry::tensor<float, ferry::device_space>> got;
  for (int i = 0; i < 6; ++i) got.emplace_back("got", rows, width);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ferry::gather(exec[0], table, ids, got[i]).detach();
    ferry::copy(exec[1], i % 2 == 0 ? shifted : plain, ids).detach();
  }
  for (const auto& instance : exec) instance.fence("ferry_test::instances");
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto values = take(got[i]);
    CHECK(values.front() == (i % 2 == 0 ? 0.0f : 1.0f));
    CHECK(values.back() == (i % 2 == 0 ? static_cast<float>(rows - 1) : 0.0f));
  }
}

TEMPLATE_TEST_CASE("the staged path comes after the direct path of another instance and before it",
                   "[instances]", ferry::mapped_space, ferry::pinned_space) {
  const auto exec = instances(2);
  const ferry::path::direct direct;
  const ferry::path::staged staged;
  const ferry::duplicates::assume_unique unique;
  const auto ones = make<ferry::device_space>("ones", rows, width, all_of(1));
  const auto ids = make<ferry::device_space>("which", every_row());
  auto table = make<TestType>("table", rows, width, all_of(0));
  ferry::tensor<float, ferry::device_space> first("first", rows, width), second("second", rows, width);
  for (int i = 0; i < 10; ++i) ferry::scatter_add(exec[0], table, ids, ones, direct, unique).detach();
  ferry::gather(exec[0], table, ids, first, direct).detach();
  ferry::scatter_add(exec[1], table, ids, ones, staged, unique).detach();  // on the host, after the read
  ferry::gather(exec[1], table, ids, second, staged).detach();
  ferry::scatter_add(exec[0], table, ids, second, direct, unique).detach();
  ferry::gather(exec[1], table, ids, second, staged).wait();
  CHECK(take(first) == all_of(10));
  CHECK(take(second) == all_of(22));
}

TEST_CASE("rows that the staged path reads by DMA are not overwritten before", "[instances]") {
  const auto exec = instances(2);
  const ferry::path::staged staged;
  const ferry::path::direct direct;
  const ferry::duplicates::assume_unique unique;
  const auto tens = make<ferry::device_space>("tens", rows, width, all_of(10));
  const auto device_ids = make<ferry::device_space>("which", every_row());
  const auto ids = every_row();  // neighbours from the first to the last
  for (int round = 0; round < 10; ++round) {
    auto table = make<ferry::pinned_space>("table", rows, width, all_of(1));
    auto values = make<ferry::pinned_space>("values", rows, width, all_of(2));
    auto far = make<ferry::device_space>("far", rows, width, all_of(0));
    ferry::tensor<float, ferry::device_space> batch("batch", rows, width);
    ferry::gather(exec[0], table, ids, batch, staged).detach();
    ferry::scatter(exec[1], table, device_ids, tens, direct, unique).detach();
    ferry::scatter(exec[0], far, ids, values, staged, unique).detach();
    ferry::gather(exec[1], tens, device_ids, values, direct).detach();
    for (const auto& instance : exec) instance.fence("ferry_test::instances");
    CHECK(take(batch) == all_of(1));
    CHECK(take(table) == all_of(10));
    CHECK(take(far) == all_of(2));
    CHECK(take(values) == all_of(10));
  }
}

TEST_CASE("a plan may be used and dropped by instances that did not make it", "[instances]") {
  const auto exec = instances(3);
  const auto ones = make<ferry::device_space>("ones", rows, width, all_of(1));
  const auto ids = make<ferry::device_space>("which", every_row());
  auto table = make<ferry::device_space>("table", rows, width, all_of(0));
  for (std::size_t i = 0; i < 30; ++i) {
    const auto plan = ferry::make_plan(exec[i % 3], ids, rows);
    ferry::scatter_add(exec[(i + 1) % 3], table, plan, ones).detach();
  }
  for (const auto& instance : exec) instance.fence("ferry_test::instances");
  CHECK(take(table) == all_of(30));
}

TEST_CASE("a tensor forgets work that has ended", "[instances]") {
  const auto exec = instances(2);
  const auto ids = make<ferry::device_space>("which", every_row());
  const auto table = make<ferry::device_space>("table", rows, width, all_of(3));
  ferry::tensor<float, ferry::device_space> batch("batch", rows, width);
  for (int i = 0; i < 200; ++i)
    ferry::gather(exec[static_cast<std::size_t>(i % 2)], table, ids, batch).detach();
  CHECK(table.accesses()->before_write(~0ull).size() <= 2);
  CHECK(batch.accesses()->before_write(~0ull).size() <= 2);
  batch.accesses()->wait_for_all();
  CHECK(batch.accesses()->before_write(~0ull).empty());
  CHECK(take(batch) == all_of(3));
}

namespace threads {

constexpr std::int64_t rows = 300, n = 97, width = 12;
constexpr int rounds = 25;

std::vector<std::int64_t> indices_of(std::int64_t seed) {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) drawn[static_cast<std::size_t>(i)] = (i * i * 31 + seed * 17) % rows;
  return drawn;
}

/// Operands that all threads read, and those that each of them writes.
struct shared_operands {
  ferry::tensor<float, ferry::mapped_space> table{"read by all threads", rows, width};
  ferry::row_plan plan;

  explicit shared_operands(const exec_space& exec) {
    ferry::init::uniform(exec, table, -1.0f, 1.0f, 5);
    plan = ferry::make_plan(exec, indices_of(0), rows);
    exec.fence("ferry_test::made");
  }
};

/// Rounds of verbs of one thread, of which it waits for some, lets others go and drops tickets of the rest.
std::vector<float> work(const exec_space& exec, const shared_operands& operands, int thread) {
  ferry::tensor<float, ferry::device_space> thread_table("own", rows, width), batch("batch", n, width),
      planned("planned", n, width);
  ferry::init::zeros(exec, thread_table);
  const ferry::optim::adam rule{.lr = 1e-2};
  auto state = ferry::optim::make_state(rule, thread_table);
  for (int round = 0; round < rounds; ++round) {
    const auto mine = indices_of(thread * 100 + round);
    ferry::gather(exec, operands.table, mine, batch).detach();
    { const auto dropped = ferry::gather(exec, operands.table, operands.plan, planned); }
    ferry::scatter_add(exec, thread_table, mine, batch).detach();
    ferry::step(exec, rule, thread_table, state, operands.plan, planned).wait();
    ferry::scatter(exec, thread_table, operands.plan, batch, ferry::duplicates::mean{}).detach();
  }
  exec.fence("ferry_test::worked");
  return take(thread_table);
}

TEST_CASE("threads with instances of their own share tables, plans and the engine", "[threads]") {
  constexpr int threads = 4;
  const exec_space exec;
  const shared_operands operands(exec);
  std::vector<std::vector<float>> expected, results(threads);
  for (int t = 0; t < threads; ++t) expected.push_back(work(exec, operands, t));

  // A host's threads share its instance: Kokkos divides no more cores than there are.
  std::vector<exec_space> instances(threads, exec);
  if constexpr (!ferry::detail::is_host_exec<exec_space>)
    instances = Kokkos::Experimental::partition_space(exec, std::vector<int>(threads, 1));
  std::atomic<bool> over{false};
  std::thread trims([&over] {
    while (!over) {
      static_cast<void>(ferry::trim());
      static_cast<void>(ferry::memory_statistics<ferry::pinned_space>());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      results[static_cast<std::size_t>(t)] = work(instances[static_cast<std::size_t>(t)], operands, t);
    });
  for (auto& thread : workers) thread.join();
  over = true;
  trims.join();
  for (std::size_t t = 0; t < results.size(); ++t) CHECK(results[t] == expected[t]);
}

}  // namespace threads

}  // namespace ferry_test::instances_test
