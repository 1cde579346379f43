// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

/// Slots of many threads at once, and slots that no other thread helps with.
namespace ferry_test::slot_threads_cuda_test {

constexpr std::size_t rows = 5000, width = 48;

/// Some staged verbs both ways, and cooperative ones.
bool some_verbs(const exec_space& exec, std::uint64_t seed) {
  auto random = generator(seed);
  const auto content = values<float>(random, rows * width);
  const auto table = make<ferry::pinned_space>("weights", rows, width, content);
  bool good = true;
  for (const std::size_t n : {300u, 20001u, 6007u}) {
    const auto ids = indices<std::int64_t>(random, n, rows);
    const auto expected = gathered(content, width, ids, std::vector<float>(n * width));
    ferry::tensor<float, ferry::device_space> near("near", n, width);
    ferry::gather(exec, table, ids, near, ferry::path::staged{}).wait();
    good = good && same_bits(take(near), expected);
    put(near, std::vector<float>(n * width, -1.0f));
    ferry::gather(exec, table, ids, near, ferry::path::cooperative{}).wait();
    good = good && same_bits(take(near), expected);
    ferry::tensor<float, ferry::pageable_space> back("back", n, width);
    ferry::copy(exec, near, back, ferry::path::staged{}).wait();
    good = good && same_bits(take(back), expected);
  }
  return good;
}

std::vector<exec_space> instances_for(int callers) {
  return Kokkos::Experimental::partition_space(exec_space{},
                                               std::vector<int>(static_cast<std::size_t>(callers), 1));
}

TEST_CASE("slots of several host threads, each with an instance of its own", "[slots][threads]") {
  const watchdog dog("slots of several host threads", std::chrono::seconds(120));
  constexpr int callers = 4;
  const auto instances = instances_for(callers);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      for (std::uint64_t round = 0; round < 4; ++round)
        if (!some_verbs(instances[static_cast<std::size_t>(caller)],
                        1000 * static_cast<std::uint64_t>(caller) + round))
          ++wrong;
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

#if defined(_OPENMP)
TEST_CASE("slots of the threads of a parallel region", "[slots][threads]") {
  const watchdog dog("slots within a parallel region", std::chrono::seconds(120));
  constexpr int callers = 24;
  const auto instances = instances_for(callers);
  std::atomic<int> wrong{0};
#pragma omp parallel for num_threads(callers) schedule(static, 1)
  for (int caller = 0; caller < callers; ++caller)
    if (!some_verbs(instances[static_cast<std::size_t>(caller)], 77 + static_cast<std::uint64_t>(caller)))
      ++wrong;
  CHECK(wrong == 0);
}
#endif

// As where the system starts no thread.
TEST_CASE("slots of the calling thread alone", "[slots][threads]") {
  using element = std::int64_t;
  const watchdog dog("slots of the calling thread alone");
  const exec_space exec;
  auto random = generator(71);
  for (const std::size_t n : {1u, 5u, 40000u, 300001u}) {
    CAPTURE(n);
    const auto content = values<element>(random, n * 3);
    ferry::tensor<element, ferry::device_space> device_array("there", n, 3);
    put(device_array, std::vector<element>(n * 3, -1));
    ferry::tensor<element, ferry::pageable_space> back("back", n, 3);
    put(back, std::vector<element>(n * 3, -2));
    const auto items = static_cast<std::int64_t>(n);
    constexpr std::int64_t item_bytes = 3 * sizeof(element);
    std::int64_t filled = 0, drained = 0;
    ferry::detail::launch_context<exec_space> call(exec, "test");
    const ferry::detail::slot_tuning alone{std::int64_t{1} << 18, 1, 2, false, false};
    const std::string label = "ferry_test::alone";
    const auto target = ferry::make_ref(device_array);
    {
      ferry::detail::copy_slots<exec_space> slots(call, {label, items, item_bytes}, alone, call.exec());
      slots.to_device(
          [&](std::byte* slot, std::int64_t first, std::int64_t count) {
            std::copy_n(content.begin() + first * 3, count * 3, reinterpret_cast<element*>(slot));
            filled += count;
          },
          [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
            ferry::detail::gather_by_slot(
                call.exec(), label, ferry::detail::rows_in_slot<const element>(slot, count, 3),
                ferry::detail::rows_from(target, first, count), ferry::kernels::identity{}, count);
          });
    }
    {
      ferry::detail::copy_slots<exec_space> slots(call, {label, items, item_bytes}, alone, call.exec());
      slots.from_device(
          [&](std::byte* slot, std::int64_t first, std::int64_t count) {
            ferry::detail::gather_by_slot(call.exec(), label, ferry::detail::rows_from(target, first, count),
                                          ferry::detail::rows_in_slot<element>(slot, count, 3),
                                          ferry::kernels::identity{}, count);
          },
          [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
            std::copy_n(reinterpret_cast<const element*>(slot), count * 3, back.data() + first * 3);
            drained += count;
          });
    }
    call.finish().wait();
    CHECK(filled == items);
    CHECK(drained == items);
    CHECK(same_bits(take(device_array), content));
    CHECK(same_bits(take(back), content));
  }
}

}  // namespace ferry_test::slot_threads_cuda_test
