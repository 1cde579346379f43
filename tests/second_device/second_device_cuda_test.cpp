// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <catch2/catch_session.hpp>

#include <cstdio>
#include <exception>
#include <set>

/// Kokkos on one device while threads have another one current: a program of its own, since Kokkos chooses once.
namespace ferry_test::second_device_cuda_test {

namespace {

/// The last device is Kokkos'; threads have each of the others current in turn.
int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
const int chosen_device = device_count() - 1;
int other_device() {
  static int turn = 0;
  return turn++ % chosen_device;
}

int current_device() {
  int device = -1;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  return device;
}

using work = std::function<void()>;

/// Does something of ferry's with the other device current, which it must still be afterwards.
void from_other_device(const work& job) {
  const int second = other_device();
  REQUIRE(cudaSetDevice(second) == cudaSuccess);
  job();
  CHECK(current_device() == second);
}

/// Runs it in a thread that has never used CUDA. Assertions are left to the caller: Catch2 takes them from one
/// thread.
void from_new_thread(const work& job) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      job();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

cudaPointerAttributes attributes_of(const void* data) {
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, data) == cudaSuccess);
  return attributes;
}

/// The place of memory of each space, and the device that it is for.
void check_place(ferry::device_space, const void* data, std::size_t) {
  CHECK(attributes_of(data).type == cudaMemoryTypeDevice);
  CHECK(attributes_of(data).device == chosen_device);
}
void check_place(ferry::pinned_space, const void* data, std::size_t) {
  CHECK(attributes_of(data).type == cudaMemoryTypeHost);
  CHECK(attributes_of(data).devicePointer == data);
}
void check_place(ferry::mapped_space, const void* data, std::size_t bytes) {
  if (attributes_of(data).type != cudaMemoryTypeManaged)
    return;  // page-locked where nothing else is to be had
  int reader = -9;
  REQUIRE(cudaMemRangeGetAttribute(&reader, sizeof reader, cudaMemRangeAttributeAccessedBy, data, bytes) ==
          cudaSuccess);
  CHECK(reader == chosen_device);
}
void check_place(ferry::pageable_space, const void*, std::size_t) {}

constexpr std::size_t rows = 500, width = 12, n = 300;

/// Checks the content of a table after a verb; `content` becomes it.
template <class Space>
void check_changed(const ferry::tensor<float, Space>& table, std::vector<float>& content,
                   const std::vector<double>& expected) {
  CHECK(close(take(table), expected));
  content.assign(expected.begin(), expected.end());
}

/// Every verb once, on values that floats add without rounding. `run` says from where each is called.
template <class Space>
void check_verbs(const Kokkos::Cuda& exec, void (*run)(const work&)) {
  auto random = generator(41);
  auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto fresh = values<float>(random, n * width);
  std::unique_ptr<ferry::tensor<float, Space>> table;
  std::unique_ptr<ferry::tensor<float, ferry::device_space>> batch, grads;
  std::unique_ptr<ferry::tensor<std::int64_t, ferry::device_space>> chosen;
  run([&] {
    table = std::make_unique<ferry::tensor<float, Space>>("table", rows, width);
    batch = std::make_unique<ferry::tensor<float, ferry::device_space>>("batch", n, width);
    grads = std::make_unique<ferry::tensor<float, ferry::device_space>>("grads", n, width);
    chosen = std::make_unique<ferry::tensor<std::int64_t, ferry::device_space>>("which", n);
  });
  check_place(Space{}, table->data(), rows * width * sizeof(float));
  check_place(ferry::device_space{}, batch->data(), 0);
  put(*table, content);
  put(*grads, fresh);
  put(*chosen, ids);

  run([&] { ferry::gather(exec, *table, ids, *batch).wait(); });  // indices of the host
  CHECK(same_bits(take(*batch), gathered(content, width, ids, std::vector<float>(n * width))));
  put(*batch, std::vector<float>(n * width, -1.0f));
  run([&] { ferry::gather(exec, *table, *chosen, *batch).wait(); });
  CHECK(same_bits(take(*batch), gathered(content, width, ids, std::vector<float>(n * width))));
  if constexpr (std::is_same_v<Space, ferry::pinned_space>) {
    put(*batch, std::vector<float>(n * width, -1.0f));
    run([&] { ferry::gather(exec, *table, *chosen, *batch, ferry::path::staged{}).wait(); });
    CHECK(same_bits(take(*batch), gathered(content, width, ids, std::vector<float>(n * width))));
    put(*batch, std::vector<float>(n * width, -1.0f));
    put(*batch, std::vector<float>(n * width, -1.0f));
    run([&] { ferry::gather(exec, *table, *chosen, *batch, ferry::path::ordered{}).wait(); });
    CHECK(same_bits(take(*batch), gathered(content, width, ids, std::vector<float>(n * width))));
  }

  run([&] { ferry::scatter(exec, *table, *chosen, *grads).wait(); });
  check_changed(*table, content, scattered(content, width, ids, fresh, false, "duplicates::last"));
  run([&] { ferry::scatter_add(exec, *table, *chosen, *grads).wait(); });
  check_changed(*table, content, scattered(content, width, ids, fresh, true, "duplicates::sum"));

  const ferry::optim::sgd rule{.lr = 0.5};
  run([&] {
    auto state = ferry::optim::make_state(rule, *table);
    const auto plan = ferry::make_plan(exec, *chosen, rows);
    ferry::step(exec, rule, *table, state, plan, *grads).wait();
  });
  auto downhill = fresh;
  for (auto& value : downhill) value *= -0.5f;
  check_changed(*table, content, scattered(content, width, ids, downhill, true, "duplicates::sum"));

  std::unique_ptr<ferry::tensor<float, ferry::device_space>> second;
  run([&] {
    second = std::make_unique<ferry::tensor<float, ferry::device_space>>("other", rows, width);
    ferry::copy(exec, *table, *second).wait();
  });
  CHECK(same_bits(take(*second), content));

  bool threw = false;
  const std::vector<std::int64_t> bad(n, static_cast<std::int64_t>(rows));
  run([&] {
    try {
      ferry::gather(exec, *table, bad, *batch).wait();
    } catch (const ferry::out_of_range&) {
      threw = true;
    }
  });
  CHECK(threw);
  run([&] { ferry::init::zeros(exec, *table); });
  CHECK(same_bits(take(*table), std::vector<float>(rows * width, 0.0f)));
  run([&] { table.reset(), batch.reset(), second.reset(); });
}

}  // namespace

TEST_CASE("a thread that has used no device gets no context on those that Kokkos does not use",
          "[second_device]") {
  constexpr int first_device = 0;  // the one of a thread that has not chosen
  const auto active_devices = [] {
    int sum = 0;
    for (int device = 0; device < chosen_device; ++device) {
      unsigned int flags = 0;
      int active = -1;
      REQUIRE(cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS);
      sum += active;
    }
    return sum;
  };
  if (active_devices() != 0) SKIP("another device is in use already");
  int before = -1, after = -1;
  from_new_thread([&] {
    cudaGetDevice(&before);
    ferry::tensor<float, ferry::device_space> near("near", 100, 4);
    ferry::tensor<float, ferry::pinned_space> far("far", 100, 4);
    cudaGetDevice(&after);
  });
  CHECK(before == first_device);
  CHECK(after == chosen_device);  // a thread without a context keeps the one of its first call
  CHECK(active_devices() == 0);
}

TEMPLATE_TEST_CASE("memory is that of Kokkos' device, whichever is current", "[second_device]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{3} << 20}) {
    std::unique_ptr<ferry::tensor<char, TestType>> array;
    from_new_thread([&] { array = std::make_unique<ferry::tensor<char, TestType>>("made", count); });
    check_place(TestType{}, array->data(), count);
    from_new_thread([&] { array.reset(); });
    from_other_device([&] { array = std::make_unique<ferry::tensor<char, TestType>>("made", count); });
    check_place(TestType{}, array->data(), count);
    from_other_device([&] { array.reset(); });
  }
}

TEMPLATE_TEST_CASE("every verb works with another device current", "[second_device]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const Kokkos::Cuda exec;
  REQUIRE(exec.cuda_device() == chosen_device);
  check_verbs<TestType>(exec, from_other_device);
  check_verbs<TestType>(exec, from_new_thread);
}

TEST_CASE("adopted memory is locked for the device", "[second_device]") {
  auto random = generator(42);
  auto memory = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const Kokkos::Cuda exec;
  ferry::tensor<float, ferry::device_space> batch("batch", n, width);
  from_other_device([&] {
    const auto table = ferry::adopt<ferry::pinned_space>(std::span<float>(memory), rows, width);
    ferry::gather(exec, table, ids, batch).wait();
  });
  CHECK(same_bits(take(batch), gathered(memory, width, ids, std::vector<float>(n * width))));
}

TEST_CASE("plans of every size are made on the device", "[second_device]") {
  auto random = generator(43);
  const Kokkos::Cuda exec;
  constexpr std::size_t many_rows = 50000;
  for (const std::size_t count : {0, 100, 2048, 2049, 70000, 140000, 300000, 600000}) {
    CAPTURE(count);
    const auto ids = indices<std::int64_t>(random, count, many_rows);
    std::vector<float> counts(many_rows);
    for (const auto row : ids) counts[static_cast<std::size_t>(row)] += 1.0f;
    const auto chosen = make<ferry::device_space>("which", ids);
    const auto ones = make<ferry::device_space>("ones", count, 1, std::vector<float>(count, 1.0f));
    auto table = make<ferry::device_space>("table", many_rows, 1, std::vector<float>(many_rows, 0.0f));
    std::int64_t distinct = -1;
    from_other_device([&] {
      const auto plan = ferry::make_plan(exec, chosen, many_rows);
      distinct = plan.unique_count();
      ferry::scatter_add(exec, table, plan, ones).wait();
    });
    CHECK(distinct == static_cast<std::int64_t>(std::set<std::int64_t>(ids.begin(), ids.end()).size()));
    CHECK(same_bits(take(table), counts));
  }
}

TEST_CASE("tickets order instances from any device", "[second_device]") {
  auto random = generator(44);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto execs = Kokkos::Experimental::partition_space(Kokkos::Cuda{}, 1, 1);
  const auto table = make<ferry::device_space>("table", rows, width, content);
  const auto chosen = make<ferry::device_space>("which", ids);
  ferry::tensor<float, ferry::device_space> first("first", n, width);
  ferry::tensor<float, ferry::pinned_space> second("second", n, width);
  for (int round = 0; round < 5; ++round) {
    put(second, std::vector<float>(n * width, -1.0f));
    from_other_device([&] {
      auto ticket = ferry::gather(execs[0], table, chosen, first);
      ticket.then(execs[1]);
      auto copied = ferry::copy(execs[1], first, second);
      static_cast<void>(ticket.ready());
      ticket.detach();
      while (!copied.ready()) std::this_thread::yield();
      copied.wait();
    });
    CHECK(same_bits(take(second), gathered(content, width, ids, std::vector<float>(n * width))));
  }
}

}  // namespace ferry_test::second_device_cuda_test

int main(int argc, char* argv[]) {
  constexpr int skipped = 77;  // see CMakeLists.txt
  const int devices = ferry_test::second_device_cuda_test::device_count();
  if (devices < 2) {
    std::printf("skipped: %d CUDA devices are visible, and this program needs two\n", devices);
    return skipped;
  }
  Kokkos::ScopeGuard kokkos(
      Kokkos::InitializationSettings().set_device_id(ferry_test::second_device_cuda_test::chosen_device));
  return Catch::Session().run(argc, argv);
}
