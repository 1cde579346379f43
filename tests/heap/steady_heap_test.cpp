// SPDX-License-Identifier: Apache-2.0
#include "heap/heap.hpp"
#include "support/test.hpp"

namespace ferry_test::steady_heap_test {

/// Occupies an instance until the host raises the flag, a second at most: each read takes a microsecond.
struct wait_for_flag {
  const volatile int* flag;
  KOKKOS_FUNCTION void operator()(int) const {
    for (int reads = 0; *flag == 0 && reads < 1000000; ++reads) {
    }
  }
};

constexpr std::int64_t rows = 500, n = 64, width = 24;

using exec_space = Kokkos::DefaultExecutionSpace;
constexpr bool on_device = !ferry::HostExecutionSpace<exec_space>;

/// The objects of a training loop, under labels that are longer than a short string.
struct loop {
  exec_space exec;
  ferry::tensor<float, ferry::device_space> table{"a table with a label of more than thirty letters", rows,
                                                  width};
  ferry::tensor<float, ferry::device_space> batch{"a batch with a label of more than thirty letters", n,
                                                  width};
  ferry::tensor<std::int64_t, ferry::device_space> indices{"indices with a label of more than thirty letters",
                                                           n};

  loop() {
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<std::int64_t>(i * 37 % 100);
    ferry::copy(exec, drawn, indices).wait();
    ferry::init::uniform(exec, table, -1.0f, 1.0f, 7);
    ferry::init::uniform(exec, batch, -1.0f, 1.0f, 8);
  }

  /// Heap allocations of 50 calls, once pools and lists have grown.
  template <class Call>
  [[nodiscard]] std::int64_t allocations_of(const Call& call) const {
    return allocations_of(call, [] {});
  }
  /// The loop with calls that don't wait. A device begins none of 20 calls before the last is enqueued, so that the pools
  /// grow to what they need. At most 10 are in flight while it counts, so that a slow device needs no larger pools.
  template <class Call>
  [[nodiscard]] std::int64_t allocations_of_unawaited(const Call& call) const {
    call();  // kernels are loaded at their first launch, which another kernel could delay
    exec.fence("steady loop");
    return allocations_of(call, [this] {
      if constexpr (on_device) {
        flag.data()[0] = 0;
        Kokkos::parallel_for("ferry_test::wait_for_flag", Kokkos::RangePolicy<exec_space>(exec, 0, 1),
                             wait_for_flag{flag.data()});
      }
    });
  }

 private:
  template <class Call, class Occupy>
  [[nodiscard]] std::int64_t allocations_of(const Call& call, const Occupy& occupy) const {
    // More than once, because lists travel between pooled objects with their capacity.
    for (int round = 0; round < 3; ++round) {
      occupy();
      for (int warm = 0; warm < 20; ++warm) call();
      raise_flag();
      exec.fence("steady loop");
    }
    const std::int64_t before = heap_allocations();
    for (int i = 0; i < 50; ++i) {
      call();
      if (i % 10 == 9) exec.fence("steady loop");
    }
    return heap_allocations() - before;
  }
  void raise_flag() const {
    if constexpr (on_device) *static_cast<volatile int*>(flag.data()) = 1;
  }

  mutable ferry::tensor<int, ferry::mapped_space> flag{"flag", 1};
};

using direct = ferry::path::direct;

TEST_CASE("the program counts its heap allocations", "[steady_heap]") {
  const std::int64_t before = heap_allocations();
  { const std::vector<int> block(1000); }
  CHECK(heap_allocations() == before + 1);
}

TEST_CASE("a steady gather takes nothing from the heap", "[steady_heap]") {
  loop kit;
  const auto plan = ferry::make_plan(kit.exec, kit.indices, rows);
  CHECK(kit.allocations_of([&] { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch).wait(); }) == 0);
  CHECK(kit.allocations_of([&] { ferry::gather(kit.exec, kit.table, plan, kit.batch).wait(); }) == 0);
  CHECK(kit.allocations_of_unawaited(
            [&] { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch, direct{}).detach(); }) == 0);
  CHECK(kit.allocations_of_unawaited(
            [&] { static_cast<void>(ferry::make_plan(kit.exec, kit.indices, rows)); }) == 0);
}

TEST_CASE("a steady scatter takes nothing from the heap", "[steady_heap]") {
  loop kit;
  const auto plan = ferry::make_plan(kit.exec, kit.indices, rows);
  CHECK(kit.allocations_of([&] { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch).wait(); }) == 0);
  CHECK(kit.allocations_of_unawaited(
            [&] { ferry::scatter(kit.exec, kit.table, plan, kit.batch).detach(); }) == 0);
  CHECK(kit.allocations_of([&] { ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch).wait(); }) ==
        0);
  CHECK(kit.allocations_of([&] { ferry::scatter_add(kit.exec, kit.table, plan, kit.batch).wait(); }) == 0);
}

TEST_CASE("a steady step takes nothing from the heap", "[steady_heap]") {
  loop kit;
  const auto plan = ferry::make_plan(kit.exec, kit.indices, rows);
  auto adam = ferry::optim::adam{.lr = 1e-3};
  auto state = ferry::optim::make_state(adam, kit.table);
  CHECK(kit.allocations_of([&] { ferry::step(kit.exec, adam, kit.table, state, plan, kit.batch).wait(); }) ==
        0);
  CHECK(kit.allocations_of(
            [&] { ferry::step(kit.exec, adam, kit.table, state, kit.indices, kit.batch).wait(); }) == 0);
  CHECK(kit.allocations_of_unawaited([&] {
    ferry::step(kit.exec, adam, kit.table, state, kit.indices, kit.batch, ferry::nonfinite::skip{}).detach();
  }) == 0);
  CHECK(kit.allocations_of([&] {
    adam.lr *= 0.999;
    ferry::step(kit.exec, adam, kit.table, state, plan, kit.batch, ferry::nonfinite::reject{}).wait();
  }) == 0);
}

}  // namespace ferry_test::steady_heap_test
