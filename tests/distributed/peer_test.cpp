// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <cstdint>
#include <utility>

/// path::peer: one kernel reads the shards of all ranks. On a machine with several devices the ranks have all of
/// them in turn.
namespace ferry_test::peer_test {

namespace {

using main_exec = exec_space;

template <class T, class Space>
std::vector<T> read(const main_exec& exec, const ferry::tensor<T, Space>& array) {
  std::vector<T> values(array.size());
  ferry::tensor<T, host> host_copy("there", array.rows(), array.width());
  ferry::copy(exec, array, host_copy).wait();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = host_copy.data()[i];
  return values;
}

/// The value of element (row, column) of the tables.
struct place_value {
  KOKKOS_FUNCTION float operator()(std::int64_t i, std::int64_t j) const {
    return static_cast<float>(100 * i + j);
  }
};

}  // namespace

namespace {

/// Shards of such rows need not lie a whole number of elements apart.
struct twelve_bytes {
  std::int32_t rank, row, column;
  bool operator==(const twelve_bytes&) const = default;
};

}  // namespace

TEST_CASE("path::peer moves structs of 12 bytes, also into a new tensor", "[distributed][peer]") {
  const watchdog guard("peer gather");
  constexpr std::size_t rows = 41, columns = 5;
  const auto comm = ferry::communicator::devices(all_in_turn(3), {.deadline = std::chrono::seconds(30)});
  const main_exec exec;
  ferry::sharded_table<twelve_bytes, ferry::device_space> big("w", comm, rows, columns);
  ferry::tensor<twelve_bytes, host> whole("whole", rows, columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      whole.data()[i * columns + j] = {static_cast<std::int32_t>(i % 3), static_cast<std::int32_t>(i),
                                       static_cast<std::int32_t>(j)};
  ferry::copy(exec, whole, big).wait();
  const std::vector<std::int64_t> ids{40, 0, 3, 3, 17, 1, 39};
  std::vector<twelve_bytes> expected;
  for (const auto row : ids)
    expected.insert(expected.end(), whole.data() + static_cast<std::size_t>(row) * columns,
                    whole.data() + static_cast<std::size_t>(row + 1) * columns);
  ferry::tensor<twelve_bytes, ferry::device_space> out("out", ids.size(), columns);
  ferry::gather(exec, big, ids, out, ferry::path::peer{}).wait();
  CHECK((read(exec, out) == expected));
  const std::vector<std::int32_t> narrow(ids.begin(), ids.end());
  ferry::tensor<twelve_bytes, ferry::device_space> unchecked("unchecked", ids.size(), columns);
  ferry::gather(exec, big, narrow, unchecked, ferry::path::peer{}, ferry::bounds::unchecked{}).wait();
  CHECK((read(exec, unchecked) == expected));
  // One rank alone: path::peer is not collective.
  const auto result = ferry::gather<ferry::device_space>(exec, big, ids, ferry::path::peer{}).get();
  CHECK((read(exec, result) == expected));
#ifndef KOKKOS_ENABLE_THREADS
  comm.run([&](int rank, const auto& instance) {
    if (rank == 1)
      expect(
          read(instance, ferry::gather<ferry::device_space>(instance, big, ids, ferry::path::peer{}).get()) ==
              expected,
          "by one rank");
    // All ranks, each on its device.
    const auto mine = ferry::gather<ferry::device_space>(instance, big, ids).get();
    expect(mine.device() == ferry::device_of(instance), "the device of the rank");
    expect(read(instance, mine) == expected, "by all ranks");
  });
#endif
}

#ifndef KOKKOS_ENABLE_THREADS
TEST_CASE("path::peer reads what the collective calls before it have written", "[distributed][peer]") {
  const watchdog guard("peer gather");
  constexpr int ranks = 4, rounds = 30;
  constexpr std::size_t rows = 64;
  const auto comm = ferry::communicator::devices(all_in_turn(ranks), {.deadline = std::chrono::seconds(30)});
  ferry::sharded_table<float, ferry::device_space> big("w", comm, rows, width);
  ferry::init::zeros(main_exec{}, big);
  std::vector<std::int64_t> every_row(rows);
  for (std::size_t i = 0; i < rows; ++i) every_row[i] = static_cast<std::int64_t>(i);
  comm.run([&](int rank, const auto& instance) {
    ferry::tensor<float, ferry::device_space> out("out", comm.device(rank), rows, width);
    ferry::tensor<float, ferry::device_space> ones("ones", comm.device(rank), rows, width);
    ferry::init::constant(instance, ones, 1.0f);
    for (int round = 1; round <= rounds; ++round) {
      ferry::scatter_add(instance, big, every_row, ones).wait();  // every rank adds to every row
      ferry::gather(instance, big, every_row, out, ferry::path::peer{}).detach();
      if (round % 3 != 0) continue;  // the next write comes after the read on the device
      const auto content = read(instance, out);
      for (const float number : content)
        expect(number == static_cast<float>(ranks * round), "all of this call");
    }
  });
}
#endif

TEST_CASE("path::peer reports bad indices and refuses what it can't read", "[distributed][peer]") {
  const main_exec exec;
  const auto comm = ferry::communicator::threads(3);
  ferry::sharded_table<float, host> big("big", comm, 10, 4);
  ferry::init::custom(exec, big, place_value{});
  ferry::tensor<float, ferry::device_space> out("out", 3, 4);
  ferry::init::constant(exec, out, -1.0f);
  const std::vector<std::int64_t> bad{1, 10, 2};
  const auto text =
      said<ferry::out_of_range>([&] { ferry::gather(exec, big, bad, out, ferry::path::peer{}).wait(); });
  CHECK(text.find("'big'") != std::string::npos);
  CHECK(text.find("10") != std::string::npos);
  CHECK(read(exec, out) == std::vector<float>{100, 101, 102, 103, -1, -1, -1, -1, 200, 201, 202, 203});
  CHECK_THROWS_AS(ferry::gather(exec, big, std::vector<int>{1}, out, ferry::path::peer{}).wait(),
                  ferry::invalid_argument);
  const auto plan = ferry::make_plan(exec, std::vector<int>{1, 2, 3}, 11);
  CHECK_THROWS_AS(ferry::gather(exec, big, plan, out, ferry::path::peer{}).wait(), ferry::invalid_argument);
  // An object that holds the shard of its rank alone.
  const auto lonely = said<ferry::invalid_argument>([&] {
    comm.run([&](int rank) {
      ferry::sharded_table<float, host> mine("mine", comm, 10, 4);
      comm.barrier();
      if (rank != 0) return;
      ferry::tensor<float, ferry::device_space> rows("rows", 1, 4);
      ferry::gather(exec_space{}, mine, std::vector<int>{1}, rows, ferry::path::peer{}).wait();
    });
  });
  CHECK(lonely.find("does not hold that of rank 1") != std::string::npos);
  // No rows, and rows without elements.
  ferry::tensor<float, ferry::device_space> none("none", 0, 4);
  ferry::gather(exec, big, std::vector<int>{}, none, ferry::path::peer{}).wait();
  ferry::sharded_table<float, host> thin("thin", comm, 10, 0);
  ferry::tensor<float, ferry::device_space> flat("flat", 1, 0);
  CHECK_THROWS_AS(ferry::gather(exec, thin, std::vector<int>{11}, flat, ferry::path::peer{}).wait(),
                  ferry::out_of_range);
}

}  // namespace ferry_test::peer_test
