// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Sums of dense arrays in memory of devices and of the host.
namespace ferry_test::device_arrays_test {

namespace {

template <class T>
using sum_of = std::conditional_t<std::is_integral_v<T>, std::int64_t,
                                  std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// ((x0 + x1) + x2) + ... of element i, rounded once.
template <class T>
T expected_sum(const std::vector<std::vector<T>>& parts, std::size_t i) {
  auto sum = static_cast<sum_of<T>>(parts[0][i]);
  for (std::size_t r = 1; r < parts.size(); ++r) sum += static_cast<sum_of<T>>(parts[r][i]);
  return T(sum);
}

/// Numbers whose sum depends on the order of the additions.
template <class T>
std::vector<T> uneven_values(std::mt19937_64& random, std::size_t count) {
  std::vector<T> result;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>)
      result.push_back(static_cast<T>(random()));
    else
      result.push_back(
          T(std::ldexp(static_cast<float>(random() % 2047) - 1023.0f, static_cast<int>(random() % 12) - 10)));
  }
  return result;
}

template <class T>
void sum_arrays(std::uint64_t salt) {
  auto random = generator(salt);
  for (const auto& comm : all_groups())
    for (const std::size_t rows : {0u, 1u, 5u, 16u, 333u, 4099u}) {
      const int ranks = comm.size();
      INFO(ranks << " ranks, " << rows << " rows of " << sizeof(T) << "-byte elements");
      const std::size_t columns = 1 + random() % 4, size = rows * columns;
      std::vector<std::vector<T>> values;
      for (int r = 0; r < ranks; ++r) values.push_back(uneven_values<T>(random, size));
      std::vector<T> expected(size);
      for (std::size_t i = 0; i < size; ++i) expected[i] = expected_sum(values, i);
      const int on_host = static_cast<int>(random() % 8);  // that rank has its array in host memory
      const std::size_t skipped = random() % 3;            // rows before the array, for its alignment
      run_ranks(comm, [&](int rank, const auto& exec) {
        const auto& mine = values[static_cast<std::size_t>(rank)];
        const auto check = [&](auto& whole) {
          auto array = whole.rows_between(skipped, skipped + rows);
          ferry::init::constant(exec, whole, 3);
          if (size != 0) ferry::copy(exec, mine, array).wait();
          ferry::all_reduce(exec, comm, array).wait();
          std::vector<T> read(whole.size());
          ferry::copy(exec, whole, read).wait();
          const auto& right = ranks == 1 ? mine : expected;
          expect(same_bits(read.data() + skipped * columns, right.data(), size), "the sum");
          for (std::size_t i = 0; i < read.size(); ++i)
            expect((i >= skipped * columns && i < skipped * columns + size) || read[i] == T(3),
                   "what lies next to the array");
        };
        ferry::tensor<T, device> device_array("there", comm.device(rank), skipped + rows + 2, columns);
        check(device_array);
        if (rank == on_host) {
          ferry::tensor<T, host> host_array("here", skipped + rows + 2, columns);
          check(host_array);
        } else {
          check(device_array);
        }
      });
    }
}

}  // namespace

TEST_CASE("arrays are summed in the order of the ranks", "[distributed][devices]") {
  const watchdog guard("sums of arrays", std::chrono::seconds(120));
  sum_arrays<float>(91);
  sum_arrays<double>(92);
  sum_arrays<ferry::half_t>(93);
  sum_arrays<std::int32_t>(94);
  sum_arrays<std::int8_t>(95);
}

TEST_CASE("arrays of devices that are not dense, or that ranks share, are summed", "[devices]") {
  if (!instances_work) SKIP("ranks can't share Kokkos::Threads");
  const watchdog guard("sums of shared arrays");
  const auto comm = group_on({0, 0, 0});
  const Kokkos::DefaultExecutionSpace first;
  const std::size_t rows = 70, columns = 5;
  // One array of all ranks: each element is taken three times.
  ferry::tensor<float, device> shared("shared", rows, columns);
  ferry::init::constant(first, shared, 2);
  first.fence("before the ranks begin");
  comm.run([&](const int, const auto& exec) { ferry::all_reduce(exec, comm, shared).wait(); });
  std::vector<float> read(shared.size());
  ferry::copy(first, shared, read).wait();
  CHECK(read == std::vector<float>(read.size(), 6.0f));
  // Columns of an array.
  using view = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::DefaultExecutionSpace::memory_space>;
  const std::vector<view> arrays{view("0", rows, columns), view("1", rows, columns),
                                 view("2", rows, columns)};
  comm.run([&](int rank, const auto& exec) {
    const view& whole = arrays[static_cast<std::size_t>(rank)];
    const auto some = Kokkos::subview(whole, Kokkos::ALL, Kokkos::make_pair(1, 3));
    ferry::init::constant(exec, whole, rank + 1);
    ferry::all_reduce(exec, comm, some).wait();
    std::vector<float> found(rows * columns);
    ferry::copy(exec, whole, found).wait();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool summed = i % columns == 1 || i % columns == 2;
      expect(found[i] == (summed ? 6.0f : static_cast<float>(rank + 1)), "columns");
    }
  });
}

}  // namespace ferry_test::device_arrays_test
