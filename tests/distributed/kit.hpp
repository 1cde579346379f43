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
#include <type_traits>
#include <vector>

/// The kit of the tests of sharded tables: batches of several ranks, and the same batches one after the other.
namespace ferry_test {

using host = ferry::mapped_space;
using device = ferry::device_space;

/// Kokkos::Threads serves the thread that initialised Kokkos only; the ranks then use Kokkos::Serial.
#ifdef KOKKOS_ENABLE_THREADS
using exec_space = Kokkos::Serial;
#else
using exec_space = Kokkos::DefaultExecutionSpace;
#endif
/// Ranks may use instances of the default execution space.
constexpr bool instances_work = std::is_same_v<exec_space, Kokkos::DefaultExecutionSpace>;
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

inline ferry::communicator group_on(const std::vector<int>& ids) {
  return ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
}
/// A group of threads, or one whose ranks only send messages.
inline ferry::communicator group_by(int ranks, bool messages) {
  if (!messages) return group_of(ranks);
  return ferry::communicator(std::make_shared<forwarding_transport>(ranks, std::chrono::seconds(30)));
}
/// Groups of threads; and of devices, all in turn and the first alone, unless batches travel packed.
inline std::vector<ferry::communicator> all_groups() {
  std::vector<ferry::communicator> groups;
  for (const int ranks : {1, 2, 4, 8}) groups.push_back(group_of(ranks));
  if (packs_batches() || !instances_work) return groups;
  for (const int ranks : {1, 4})
    groups.push_back(group_on(std::vector<int>(static_cast<std::size_t>(ranks))));
  for (const int ranks : {2, 3, 5}) groups.push_back(group_on(all_in_turn(ranks)));
  if (ferry::devices().size() > 1) groups.push_back(group_on(all_in_turn(8)));
  return groups;
}
/// Calls act(rank, exec) for each rank of this process.
template <class Act>
void run_ranks(const ferry::communicator& comm, const Act& act) {
  if constexpr (instances_work)
    comm.run([&](int rank, const exec_space& exec) { act(rank, exec); });
  else
    comm.run([&](int rank) { act(rank, exec_space{}); });
}

template <class T>
ferry::tensor<T, host> tensor_of(const std::vector<T>& values, std::size_t columns) {
  ferry::tensor<T, host> array("batch", values.size() / columns, columns);
  for (std::size_t i = 0; i < values.size(); ++i) array.data()[i] = values[i];
  return array;
}

/// The elements of an array, or of a sharded table by all of its ranks or by a thread for them.
template <class Array>
auto contents(const exec_space& exec, const Array& array) {
  using value = std::remove_const_t<typename Array::value_type>;
  ferry::tensor<value, host> read("read", array.rows(), array.width());
  ferry::copy(exec, array, read).wait();
  return std::vector<value>(read.data(), read.data() + read.size());
}

/// An array of rank 1, or of rows, with these values in a memory space: by default on a device.
/// @{
template <class Space = device, class T>
auto on_device(const exec_space& exec, ferry::device target, const std::vector<T>& values) {
  ferry::tensor<T, Space> array("list", target, values.size());
  if (!values.empty()) ferry::copy(exec, values, array).wait();
  return array;
}
template <class Space = device, class T>
auto on_device(const exec_space& exec, ferry::device target, const std::vector<T>& values,
               std::size_t columns) {
  ferry::tensor<T, Space> array("rows", target, values.size() / columns, columns);
  const ferry::tensor<T, host> host_rows = tensor_of(values, columns);
  ferry::copy(exec, host_rows, array).wait();
  return array;
}
/// @}

/// The batches of the ranks; `whole` has all of them by rank.
template <class T, class Index = std::int64_t>
struct batches {
  std::vector<Index> rows;
  ferry::tensor<T, host> whole;
  std::vector<std::vector<Index>> rows_of;
  std::vector<ferry::tensor<T, host>> parts;

  /// About `most` positions a rank; some ranks have none.
  batches(std::mt19937_64& random, int ranks, std::size_t table_rows, std::size_t most, bool repeats = true,
          std::size_t columns = width)
      : batches(random, draw_counts(random, ranks, most), table_rows, repeats, columns) {}
  /// As many positions as each rank's count says, or fewer if the table has too few rows that do not repeat.
  batches(std::mt19937_64& random, const std::vector<std::size_t>& counts, std::size_t table_rows,
          bool repeats = true, std::size_t columns = width) {
    std::vector<Index> distinct;
    if (!repeats) distinct = unique_indices<Index>(random, table_rows, table_rows);
    std::vector<T> numbers;
    for (std::size_t count : counts) {
      if (!repeats) count = std::min(count, distinct.size());
      auto mine =
          repeats ? indices<Index>(random, count, table_rows)
                  : std::vector<Index>(distinct.end() - static_cast<std::ptrdiff_t>(count), distinct.end());
      if (!repeats) distinct.resize(distinct.size() - count);
      const auto part = values<T>(random, count * columns);
      rows.insert(rows.end(), mine.begin(), mine.end());
      numbers.insert(numbers.end(), part.begin(), part.end());
      rows_of.push_back(std::move(mine));
      parts.push_back(tensor_of(part, columns));
    }
    whole = tensor_of(numbers, columns);
  }
  /// Numbers whose sums round: these depend on the order of additions.
  void make_uneven() {
    const auto scale = [](auto& array) {
      for (std::size_t i = 0; i < array.size(); ++i)
        array.data()[i] = ferry::convert<T>(ferry::convert<double>(array.data()[i]) *
                                            (1.1 + 0.01 * static_cast<double>(i % 97)));
    };
    std::size_t place = 0;
    for (auto& array : parts) {
      if constexpr (!std::is_integral_v<T>) scale(array);
      for (std::size_t i = 0; i < array.size(); ++i) whole.data()[place++] = array.data()[i];
    }
  }
  /// Some indices name no row.
  void spoil(std::mt19937_64& random) {
    std::size_t p = 0;
    for (auto& mine : rows_of)
      for (auto& index : mine) {
        if (random() % 4 == 0) index = static_cast<Index>(static_cast<std::int64_t>(random() % 500) - 250);
        rows[p++] = index;
      }
  }
  std::size_t at(int rank) const {
    std::size_t first = 0;
    for (int r = 0; r < rank; ++r) first += rows_of[static_cast<std::size_t>(r)].size();
    return first;
  }
  static std::vector<std::size_t> draw_counts(std::mt19937_64& random, int ranks, std::size_t most) {
    std::vector<std::size_t> counts;
    for (int r = 0; r < ranks; ++r) counts.push_back(random() % 4 == 0 ? 0 : random() % (most + 1));
    return counts;
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

/// For threads of ranks, where Catch2's assertions must not be used: communicator::run throws it.
/// @{
inline void expect(bool holds, const char* claim) {
  if (!holds) throw std::logic_error(claim);
}
inline void expect(bool holds, const std::string& claim) { expect(holds, claim.c_str()); }
/// @}

/// The error of a call after its kind: "peer: ...", "protocol: ...", "communication: ...", "range: ..." or
/// "own: ...". Empty if there is none.
template <class Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const ferry::peer_error& caught) {
    return std::string("peer: ") + caught.what();
  } catch (const ferry::protocol_error& caught) {
    return std::string("protocol: ") + caught.what();
  } catch (const ferry::communication_error& caught) {
    return std::string("communication: ") + caught.what();
  } catch (const ferry::out_of_range& caught) {
    return std::string("range: ") + caught.what();
  } catch (const ferry::error& caught) {
    return std::string("own: ") + caught.what();
  }
  return {};
}
/// The error of each rank of one call that all make.
template <class Act>
std::vector<std::string> errors_of_ranks(const ferry::communicator& comm, const Act& act) {
  std::vector<std::string> texts(static_cast<std::size_t>(comm.size()));
  run_ranks(comm, [&](int rank, const auto& exec) {
    texts[static_cast<std::size_t>(rank)] = error_of([&] {
      if constexpr (std::is_invocable_v<const Act&, int, const exec_space&>)
        act(rank, exec);
      else
        act(rank);
    });
  });
  return texts;
}

}  // namespace ferry_test
