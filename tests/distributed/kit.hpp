// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/any_sharding.hpp"
#include "distributed/forwarding_transport.hpp"
#include "support/random.hpp"
#include "support/said.hpp"
#include "support/watchdog.hpp"

#include <ferry/distributed.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

/// The kit of the tests of sharded tables: batches of several ranks, and the same batches one after the other.
namespace ferry_test {

using host = ferry::mapped_space;

/// Kokkos::Threads serves the thread that initialised Kokkos only; the ranks then use Kokkos::Serial.
#ifdef KOKKOS_ENABLE_THREADS
using exec_space = Kokkos::Serial;
#else
using exec_space = Kokkos::DefaultExecutionSpace;
#endif
constexpr std::size_t width = 6;

/// The devices of a group of `ranks` ranks: all in turn.
inline std::vector<int> all_in_turn(int ranks) {
  const auto count = static_cast<int>(ferry::devices().size());
  std::vector<int> ids;
  for (int r = 0; r < ranks; ++r) ids.push_back(r % count);
  return ids;
}
/// Numbers of ranks: 2, 3 and every larger one up to the number of devices.
inline std::vector<int> rank_counts() {
  std::vector<int> counts;
  for (int ranks = 2; ranks <= std::max(3, static_cast<int>(ferry::devices().size())); ++ranks)
    counts.push_back(ranks);
  return counts;
}

/// True if the groups of this run do not share addresses, as processes of several machines: batches and rows
/// travel packed.
inline bool packs_batches() { return std::getenv("FERRY_TEST_PACKED") != nullptr; }

inline ferry::communicator threads_of(int ranks,
                                      std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  return ferry::communicator::threads(ranks, {.deadline = deadline});
}
inline ferry::communicator group_of(int ranks,
                                    std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  if (packs_batches()) return ferry::communicator(std::make_shared<forwarding_transport>(ranks, deadline));
  return threads_of(ranks, deadline);
}

template <class T>
ferry::tensor<T, host> tensor_of(const std::vector<T>& values, std::size_t columns) {
  ferry::tensor<T, host> array("batch", values.size() / columns, columns);
  for (std::size_t i = 0; i < values.size(); ++i) array.data()[i] = values[i];
  return array;
}

/// The batches of the ranks; `whole` has all of them by rank.
template <class T, class Index = std::int64_t>
struct batches {
  std::vector<Index> rows;
  ferry::tensor<T, host> whole;
  std::vector<std::vector<Index>> rows_of;
  std::vector<ferry::tensor<T, host>> parts;

  /// About `most` positions a rank; some ranks have none.
  batches(std::mt19937_64& random, int ranks, std::size_t table_rows, std::size_t most, bool repeats = true) {
    std::vector<Index> distinct;
    if (!repeats) distinct = unique_indices<Index>(random, table_rows, table_rows);
    std::vector<T> numbers;
    for (int r = 0; r < ranks; ++r) {
      std::size_t count = random() % 4 == 0 ? 0 : random() % (most + 1);
      if (!repeats) count = std::min(count, distinct.size());
      std::vector<Index> mine;
      if (repeats)
        mine = indices<Index>(random, count, table_rows);
      else
        for (std::size_t i = 0; i < count; ++i) {
          mine.push_back(distinct.back());
          distinct.pop_back();
        }
      const auto part = values<T>(random, count * width);
      rows.insert(rows.end(), mine.begin(), mine.end());
      numbers.insert(numbers.end(), part.begin(), part.end());
      rows_of.push_back(std::move(mine));
      parts.push_back(tensor_of(part, width));
    }
    whole = tensor_of(numbers, width);
  }
  std::size_t at(int rank) const {
    std::size_t first = 0;
    for (int r = 0; r < rank; ++r) first += rows_of[static_cast<std::size_t>(r)].size();
    return first;
  }
  const std::vector<Index>& indices_of(int rank) const { return rows_of[static_cast<std::size_t>(rank)]; }
  const ferry::tensor<T, host>& values_of(int rank) const { return parts[static_cast<std::size_t>(rank)]; }
};

template <class T>
bool same_bits(const T* a, const T* b, std::size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(T)) == 0;
}

/// True if a sharded table has the bits of an ordinary one.
template <class Exec, class Sharded, class T>
bool same_table(const Exec& exec, const Sharded& sharded, const ferry::tensor<T, host>& table) {
  ferry::tensor<T, host> read("read", sharded.rows(), sharded.width());
  ferry::copy(exec, sharded, read).wait();
  return same_bits(read.data(), table.data(), table.size());
}

/// As below, for the shardings whose owners kernels find.
template <class Test>
void for_each_sharding_in_kernels(const Test& test) {
  using kind = any_sharding::kind;
  for (const kind chosen : {kind::cyclic, kind::block, kind::hashed, kind::table_wise}) {
    INFO("sharding " << static_cast<int>(chosen) << " of any_sharding");
    test(any_sharding{chosen});
  }
  test(ferry::sharding::replicated{});
}

/// Calls test(sharding) for every sharding, of two types: those that do not replicate rows share one.
template <class Test>
void for_each_sharding(const Test& test) {
  for_each_sharding_in_kernels(test);
  test(host_sharding{{any_sharding::kind::hashed}});
}

/// Calls test(sharding) for the type of every sharding.
template <class Test>
void for_each_sharding_type(const Test& test) {
  test(ferry::sharding::cyclic{});
  test(ferry::sharding::block{});
  test(ferry::sharding::hashed<7>{});
  test(ferry::sharding::replicated{});
  test(ferry::sharding::table_wise{.rank = 0});
}

/// For threads of ranks, where Catch2's assertions must not be used: communicator::run throws it.
inline void expect(bool holds, const char* claim) {
  if (!holds) throw std::logic_error(claim);
}

}  // namespace ferry_test
