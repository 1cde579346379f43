// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::transfer_statistics_test {

/// The count of one pair and path; zeros where nothing moved.
ferry::transfer_count count_of(std::string_view source, std::string_view target, std::string_view path) {
  for (const auto& count : ferry::transfer_statistics())
    if (count.from == source && count.to == target && count.path == path) return count;
  return {source, target, path};
}
template <class From, class To, class Path>
ferry::transfer_count count_of(Path) {
  return count_of(From::name, To::name, Path::name);
}

/// The bytes that kernels of a device move themselves.
template <class From, class To>
std::uint64_t over_link(std::uint64_t bytes) {
  return !ferry::detail::is_host_exec<exec_space> && (From::is_host_accessible || To::is_host_accessible)
             ? bytes
             : 0;
}

constexpr std::int64_t rows = 50, width = 6;
const std::vector<std::int64_t> indices{3, 49, 3, 0};
constexpr std::uint64_t moved = 4 * 6 * sizeof(float);

template <class Path>
void expect(const ferry::transfer_count& count, Path, std::uint64_t calls, std::uint64_t bytes,
            std::uint64_t link) {
  CAPTURE(count.from, count.to, count.path);
  CHECK(count.calls == calls);
  CHECK(count.bytes == bytes);
  if constexpr (ferry::detail::splits_rows<Path>)
    CHECK(count.zero_copy_bytes <= bytes);
  else
    CHECK(count.zero_copy_bytes == (ferry::detail::by_host_alone<Path> ? 0 : link));
}

TEMPLATE_TEST_CASE("row verbs count what they move between each pair of spaces by each path",
                   "[transfer_statistics]", ferry::device_space, ferry::pinned_space, ferry::mapped_space,
                   ferry::pageable_space) {
  using device = ferry::device_space;
  const exec_space exec;
  ferry::tensor<float, TestType> table("table", rows, width);
  ferry::tensor<float, device> batch("batch", 4, width);
  ferry::copy(exec, std::vector<float>(static_cast<std::size_t>(rows * width), 1.0f), table).wait();
  for_each_path<TestType, device, work::moves>([&]<class Path>(Path path) {
    if constexpr (!Path::chosen_at_run_time) {
      ferry::reset_transfer_statistics();
      ferry::gather(exec, table, indices, batch, path).wait();
      ferry::gather(exec, table, indices, batch, path).wait();
      expect(count_of<TestType, device>(path), path, 2, 2 * moved, over_link<TestType, device>(2 * moved));

      ferry::reset_transfer_statistics();
      ferry::scatter(exec, table, indices, batch, path).wait();
      expect(count_of<device, TestType>(path), path, 1, moved, over_link<device, TestType>(moved));
      if constexpr (!ferry::detail::splits_rows<Path>) {
        ferry::scatter_add(exec, table, indices, batch, path).wait();
        expect(count_of<device, TestType>(path), path, 2, 2 * moved, over_link<device, TestType>(2 * moved));
      }
    }
  });
}

TEST_CASE("a step counts its gradients, by a plan and by indices", "[transfer_statistics]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> grads("grads", 4, width);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, grads);
  const ferry::optim::sgd sgd{.lr = 0.1};
  auto state = ferry::optim::make_state(sgd, table);
  const auto plan = ferry::make_plan(exec, indices, rows);
  ferry::reset_transfer_statistics();
  const ferry::path::direct direct;
  ferry::step(exec, sgd, table, state, plan, grads, direct).wait();
  ferry::step(exec, sgd, table, state, indices, grads, direct).wait();
  ferry::step(exec, sgd, table, state, std::vector<std::int64_t>{5, 4, 3, 2}, grads, direct,
              ferry::duplicates::assume_unique{})
      .wait();
  using from = ferry::device_space;
  using to = ferry::mapped_space;
  expect(count_of<from, to>(direct), direct, 3, 3 * moved, over_link<from, to>(3 * moved));
}

TEST_CASE("a copy counts its bytes, and over the link those of kernels alone", "[transfer_statistics]") {
  const exec_space exec;
  ferry::tensor<std::int16_t, ferry::pinned_space> pinned("pinned", 1000);
  ferry::tensor<std::int16_t, ferry::mapped_space> mapped("mapped", 1000);
  ferry::tensor<std::int16_t, ferry::device_space> device("device", 1000);
  ferry::tensor<float, ferry::device_space> wide("wide", 1000);
  ferry::init::zeros(exec, pinned);
  ferry::init::zeros(exec, mapped);
  ferry::reset_transfer_statistics();
  const ferry::path::direct direct;
  ferry::copy(exec, pinned, device).wait();  // by a copy engine
  expect(count_of<ferry::pinned_space, ferry::device_space>(direct), direct, 1, 2000, 0);
  ferry::copy(exec, mapped, device).wait();  // by a kernel
  expect(count_of<ferry::mapped_space, ferry::device_space>(direct), direct, 1, 2000,
         over_link<ferry::mapped_space, ferry::device_space>(2000));
  ferry::copy(exec, pinned, wide).wait();  // converted by a kernel, counted in the source's type
  expect(count_of<ferry::pinned_space, ferry::device_space>(direct), direct, 2, 4000,
         over_link<ferry::pinned_space, ferry::device_space>(2000));
}

TEST_CASE("nothing is counted for empty batches and refused calls", "[transfer_statistics]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> none("none", 0, width);
  ferry::tensor<float, ferry::device_space> wrong("wrong", 3, width);
  ferry::reset_transfer_statistics();
  ferry::gather(exec, table, std::vector<std::int64_t>{}, none).wait();
  CHECK_THROWS_AS(static_cast<void>(ferry::gather(exec, table, indices, wrong)), ferry::invalid_argument);
  CHECK(ferry::transfer_statistics().empty());
}

TEST_CASE("no call of several threads is lost", "[transfer_statistics]") {
  ferry::tensor<float, ferry::pageable_space> table("table", rows, width);
  ferry::init::zeros(Kokkos::DefaultHostExecutionSpace(), table);
  ferry::reset_transfer_statistics();
  constexpr int threads = 4, calls = 50;
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&] {
        const Kokkos::DefaultHostExecutionSpace host;
        ferry::tensor<float, ferry::pageable_space> batch("batch", 4, width);
        for (int i = 0; i < calls; ++i)
          ferry::gather(host, table, indices, batch, ferry::path::direct{}).wait();
      });
  }
  const auto count = count_of<ferry::pageable_space, ferry::pageable_space>(ferry::path::direct{});
  CHECK(count.calls == threads * calls);
  CHECK(count.bytes == threads * calls * moved);
}

}  // namespace ferry_test::transfer_statistics_test
