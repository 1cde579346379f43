// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::two_devices_verbs_cuda_test {

namespace {

using device_memory = ferry::device_space;

constexpr std::size_t rows = 700, width = 20, n = 400;
/// One path alone, which is less to compile.
constexpr ferry::path::direct direct{};

/// Every verb once on one device; what the arrays hold afterwards, one after the other. Checks its memory.
template <class Space>
std::vector<float> run_verbs(const Kokkos::Cuda& exec, std::uint64_t seed) {
  const int device = exec.cuda_device();
  auto random = generator(seed);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto fresh = values<float>(random, n * width);
  auto table = make_on<Space>(device, "table", rows, width, content);
  auto grads = make_on<device_memory>(device, "grads", n, width, fresh);
  auto chosen = make_on<device_memory>(device, "which", n, 1, ids);
  auto batch = make_on<device_memory>(device, "batch", n, width, std::vector<float>(n * width, -1.0f));
  const ferry::tensor_view<const std::int64_t, device_memory> list(chosen.data(), n);
  std::vector<float> results;
  const auto keep = [&](const std::vector<float>& part) {
    results.insert(results.end(), part.begin(), part.end());
  };

  ferry::gather(exec, table, ids, batch, direct).wait();  // indices of the host
  CHECK(equal(fetch(batch), gathered(content, width, ids, std::vector<float>(n * width, 0.0f))));
  ferry::gather(exec, table, list, batch, direct).wait();
  CHECK(equal(fetch(batch), gathered(content, width, ids, std::vector<float>(n * width, 0.0f))));
  ferry::scatter_add(exec, table, list, grads, direct).wait();
  keep(fetch(table));
  const auto plan = ferry::make_plan(exec, list, rows);
  CHECK(plan.unique_count() > 0);
  const ferry::optim::adam adam{.lr = 1e-2};
  auto state = ferry::optim::make_state(adam, table, ferry::step_count::per_row{});
  for (int step = 0; step < 3; ++step)  // with coefficients and counters of rows on the device
    ferry::step(exec, adam, table, state, plan, grads, ferry::step_count::per_row{}, direct).wait();
  if constexpr (std::is_same_v<Space, device_memory>) {
    CHECK(state.field_ref(0).device() == device);
    CHECK(table.device() == ferry::device{device});
    CHECK(device_of_pointer(table.data()) == device);
  }
  keep(fetch(table));
  auto fresh_rows = ferry::gather<device_memory>(exec, table, plan, direct).get();
  CHECK(fresh_rows.device() == ferry::device{device});
  CHECK(device_of_pointer(fresh_rows.data()) == device);
  keep(fetch(fresh_rows));
  const auto saved = ferry::clone<device_memory>(exec, table).get();
  CHECK(device_of_pointer(saved.data()) == device);
  keep(fetch(saved));
  CHECK(ferry::unique(exec, list, rows).counts.device() == ferry::device{device});

  // A finding on the device, and a clean report afterwards.
  const std::vector<std::int64_t> bad(n, static_cast<std::int64_t>(rows));
  for (int round = 0; round < 3; ++round) {
    CHECK_THROWS_AS(ferry::gather(exec, table, bad, batch, direct).wait(), ferry::out_of_range);
    ferry::gather(exec, table, list, batch, direct).wait();
  }
  keep(fetch(batch));
  CHECK_THROWS_AS(  // names what lies on the other device
      ferry::step(
          exec, adam, table, state, plan,
          ferry::tensor<float, device_memory>("far", ferry::device{(device + 1) % device_count()}, n, width),
          ferry::step_count::per_row{}, direct),
      ferry::invalid_argument);
  CHECK(state.steps() == 3);
  if (device != 0) {  // a plan of another device for an instance of the first
    std::string text;
    try {
      auto near = make_on<Space>(0, "near", rows, width, content);
      auto rows_near = make_on<device_memory>(0, "rows", n, width, fresh);
      ferry::gather(Kokkos::Cuda{}, near, plan, rows_near, direct).wait();
    } catch (const ferry::invalid_argument& refused) {
      text = refused.what();
    }
    CHECK(text.find("the plan was made on device " + std::to_string(device)) != std::string::npos);
    CHECK(text.find("device 0") != std::string::npos);
  }
  ferry::init::uniform(exec, table, -1.0f, 1.0f, 3);
  keep(fetch(table));
  return results;
}

}  // namespace

TEMPLATE_TEST_CASE("every verb gives the same bits on each device", "[two_devices]", ferry::device_space,
                   ferry::mapped_space) {
  if (!has_two_devices()) SKIP("needs two devices");
  const instances execs;
  REQUIRE(execs[0].cuda_device() == 0);
  const auto second_result = run_verbs<TestType>(execs[1], 51);
  int current = -1;
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
  for (int device = 0; device < device_count(); ++device) {
    CAPTURE(device);
    REQUIRE(ferry::device_of(execs[device]) == ferry::device{device});
    CHECK(equal(run_verbs<TestType>(execs[device], 51), second_result));
  }
}

}  // namespace ferry_test::two_devices_verbs_cuda_test
