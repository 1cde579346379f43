// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/nccl.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

/// Sums by NCCL over 2, 3 ... devices of the machine. Most need two devices, because NCCL takes one rank on each.
namespace ferry_test::nccl_test {

namespace {

using device = ferry::device_space;

ferry::communicator group_on(const std::vector<int>& ids,
                             std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  return ferry::communicator::devices(ids, {.deadline = deadline});
}

bool has_two_devices() { return ferry::devices().size() > 1; }

/// Sums of small whole numbers are exact in every order.
template <class T>
void sum_on(const std::vector<int>& ids) {
  const auto ranks = static_cast<int>(ids.size());
  const auto comm = group_on(ids);
  comm.run([&](int rank, const auto& exec) {
    const ferry::nccl::any_order fast(exec, comm);
    const ferry::nccl::any_order copy = fast;
    for (const std::size_t rows : {0u, 1u, 3u, 1000u, 262147u})
      for (int turn = 0; turn < 2; ++turn) {
        ferry::tensor<T, device> array("array", comm.device(rank), rows, 2);
        std::vector<T> values(rows * 2), read(rows * 2);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = T(static_cast<float>(i % 5 + static_cast<std::size_t>(rank)));
        ferry::copy(exec, values, array).wait();
        ferry::all_reduce(exec, comm, array, turn == 0 ? fast : copy).wait();
        ferry::copy(exec, array, read).wait();
        for (std::size_t i = 0; i < values.size(); ++i) {
          const auto sum = static_cast<float>(i % 5) * static_cast<float>(ranks) +
                           static_cast<float>(ranks * (ranks - 1) / 2);
          expect(static_cast<float>(read[i]) == sum, "a sum");
        }
      }
  });
}

void sum_all_types_on(const std::vector<int>& ids) {
  sum_on<float>(ids);
  sum_on<double>(ids);
  sum_on<ferry::half_t>(ids);
  sum_on<ferry::bhalf_t>(ids);
  sum_on<std::int8_t>(ids);
  sum_on<std::uint32_t>(ids);
  sum_on<std::int64_t>(ids);
}

}  // namespace

TEST_CASE("NCCL sums the array of one rank", "[nccl]") {
  const watchdog guard("NCCL of one rank");
  sum_all_types_on({0});
}

TEST_CASE("NCCL sums the arrays of two ranks and more", "[nccl]") {
  if (!has_two_devices()) SKIP("one device");
  const watchdog guard("NCCL of two ranks and more");
  const auto count = static_cast<int>(ferry::devices().size());
  for (int ranks = 2; ranks <= count; ++ranks) {
    auto ids = all_in_turn(ranks);
    sum_all_types_on(ids);
    std::reverse(ids.begin(), ids.end());
    sum_on<float>(ids);
  }
  for (int id = 2; id < count; ++id) sum_on<float>({0, id});  // pairs, beside 0 and 1
}

TEST_CASE("NCCL refuses ranks that share a device, on all ranks", "[nccl]") {
  const watchdog guard("NCCL on one device");
  const auto comm = group_on({0, 0});
  std::vector<std::string> messages(2);
  comm.run([&](int rank, const auto& exec) {
    messages[static_cast<std::size_t>(rank)] =
        said<ferry::invalid_argument>([&] { const ferry::nccl::any_order fast(exec, comm); });
    comm.barrier();  // the group can be used
  });
  for (const auto& text : messages)
    CHECK(text.find("ranks 0 and 1 are both on device 0") != std::string::npos);
}

TEST_CASE("NCCL's policy serves its group, its rank, dense arrays and one thread", "[nccl]") {
  const watchdog guard("wrong uses of NCCL");
  const auto comm = group_on({0}), second_group = group_on({0});
  using view = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::CudaSpace>;
  const view whole("whole", 10, 5);
  comm.run([&](int, const auto& exec) {
    const ferry::nccl::any_order fast(exec, comm);
    ferry::tensor<float, device> array("array", 10);
    ferry::init::constant(exec, array, 2);
    second_group.run([&](int, const auto& elsewhere) {
      const auto text = said<ferry::invalid_argument>(
          [&] { ferry::all_reduce(elsewhere, second_group, array, fast).wait(); });
      expect(text.find("of another communicator") != std::string::npos, "another group");
    });
    const auto some = Kokkos::subview(whole, Kokkos::ALL, Kokkos::make_pair(1, 3));
    const auto text =
        said<ferry::invalid_argument>([&] { ferry::all_reduce(exec, comm, some, fast).wait(); });
    expect(text.find("is not dense") != std::string::npos, "an array that is not dense");
    ferry::all_reduce(exec, comm, array, fast).wait();  // and still works
    std::vector<float> read(10);
    ferry::copy(exec, array, read).wait();
    expect(read == std::vector<float>(10, 2.0f), "the array");
  });
  const Kokkos::Cuda exec;
  const ferry::nccl::any_order nothing(exec, comm);  // acts for the group
  ferry::tensor<float, device> array("array", 3);
  ferry::all_reduce(exec, comm, array, nothing).wait();
  comm.run([&](int, const auto& instance) {
    const auto text = said<ferry::invalid_argument>([&] {
      const ferry::nccl::any_order never(instance, comm, {.deadline = std::chrono::nanoseconds(0)});
    });
    expect(text.find("the deadline must be positive") != std::string::npos, "a deadline of zero");
  });
}

TEST_CASE("ranks that fail, differ or leave end the sums of all", "[nccl]") {
  if (!has_two_devices()) SKIP("one device");
  const watchdog guard("NCCL with failures");
  const auto ids = all_in_turn(static_cast<int>(ferry::devices().size()));
  const auto ranks = static_cast<int>(ids.size()), last = ranks - 1;
  const auto comm = group_on(ids, std::chrono::seconds(10));
  using view = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::CudaSpace>;
  const view whole("whole", 10, 5);  // on device 0
  std::vector<std::string> messages(ids.size());
  comm.run([&](int rank, const auto& exec) {
    const ferry::nccl::any_order fast(exec, comm);
    ferry::tensor<float, device> array("array", comm.device(rank), 10, 2);
    ferry::init::constant(exec, array, rank + 1);
    if (rank == 0) {
      const auto some = Kokkos::subview(whole, Kokkos::ALL, Kokkos::make_pair(1, 3));
      messages[0] = said<ferry::invalid_argument>([&] { ferry::all_reduce(exec, comm, some, fast).wait(); });
    } else {
      messages[static_cast<std::size_t>(rank)] =
          said<ferry::peer_error>([&] { ferry::all_reduce(exec, comm, array, fast).wait(); });
    }
    ferry::all_reduce(exec, comm, array, fast).wait();  // nothing had been enqueued
    std::vector<float> read(20);
    ferry::copy(exec, array, read).wait();
    expect(read == std::vector<float>(20, static_cast<float>(ranks * (ranks + 1) / 2)), "the sum");
  });
  CHECK(messages[0].find("is not dense") != std::string::npos);
  for (std::size_t r = 1; r < messages.size(); ++r)
    CHECK(messages[r].find("rank 0 failed") != std::string::npos);
  comm.run([&](int rank, const auto& exec) {
    const ferry::nccl::any_order fast(exec, comm);
    ferry::tensor<float, device> array("array", comm.device(rank), rank == last ? 11 : 10);
    messages[static_cast<std::size_t>(rank)] =
        said<ferry::protocol_error>([&] { ferry::all_reduce(exec, comm, array, fast).wait(); });
  });
  for (const auto& text : messages) CHECK(text.find("all_reduce by NCCL") != std::string::npos);
  const auto fresh = group_on(ids, std::chrono::seconds(10));
  fresh.run([&](int rank, const auto& exec) {
    const ferry::nccl::any_order fast(exec, fresh);
    if (rank == last) return;
    ferry::tensor<float, device> array("array", fresh.device(rank), 10);
    messages[static_cast<std::size_t>(rank)] =
        said<ferry::communication_error>([&] { ferry::all_reduce(exec, fresh, array, fast).wait(); });
  });
  for (int r = 0; r < last; ++r) {
    CAPTURE(messages[static_cast<std::size_t>(r)]);
    CHECK(messages[static_cast<std::size_t>(r)].find("rank " + std::to_string(last) + " has left") !=
          std::string::npos);
  }
}

}  // namespace ferry_test::nccl_test
