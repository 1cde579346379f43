// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_program.hpp"
#include "support/process_space.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry_test {

namespace {

using device_exec = Kokkos::DefaultExecutionSpace;
using host_exec = Kokkos::DefaultHostExecutionSpace;

/// Calls act(exec, space) for each kind of memory that processes share.
template <class Act>
void for_each_space(const Act& act) {
  act(host_exec{}, process_space{});
  if constexpr (ferry::detail::shares_memory<ferry::device_space>())
    act(device_exec{}, ferry::device_space{});
}

template <class Exec, class T, class Space>
std::vector<T> read(const Exec& exec, const ferry::tensor<T, Space>& array) {
  ferry::tensor<T, host> host_copy("there", array.rows(), array.width());
  ferry::copy(exec, array, host_copy).wait();
  return {host_copy.data(), host_copy.data() + host_copy.size()};
}

/// Reads in flight come before later writes, and reads after writes that a collective call has made.
template <class Space, class Exec>
void read_and_write_in_turn(const Exec& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 2000, width = 64, n = std::is_same_v<Space, process_space> ? 4000 : 200000;
  ferry::sharded_table<float, Space> big("w", comm, rows, width);
  std::vector<std::int64_t> ids(n), every(world_rank == 0 ? rows : 0);
  for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<std::int64_t>((i * 7919) % rows);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::int64_t>(i);
  ferry::tensor<float, Space> ones("ones", every.size(), width);
  ferry::init::constant(exec, ones, 1);
  ferry::init::zeros(exec, big);
  std::vector<ferry::tensor<float, Space>> outs;
  std::vector<ferry::ticket> reads;
  for (int turn = 0; turn < 12; ++turn) {
    outs.emplace_back("out", n, width);
    reads.push_back(ferry::gather(exec, big, ids, outs.back(), ferry::path::peer{}));
    if (turn % 3 == 0) {
      ferry::init::constant(exec, big, turn + 1);
    } else if (turn % 3 == 1) {
      ferry::scatter_add(exec, big, every, ones).wait();
    } else {  // by the owners' own verbs, between two barriers
      comm.barrier();
      auto& part = big.shard(world_rank);
      std::vector<std::int64_t> mine(part.rows());
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<std::int64_t>(i);
      ferry::tensor<float, Space> next("next", part.rows(), width);
      ferry::init::constant(exec, next, turn + 1);
      ferry::scatter(exec, part, mine, next).detach();
      comm.barrier();
      comm.barrier();  // `next` is of no use any more
    }
  }
  for (auto& ticket : reads) ticket.wait();
  for (std::size_t turn = 0; turn < outs.size(); ++turn)
    expect(read(exec, outs[turn]) == std::vector<float>(n * width, static_cast<float>(turn)),
           "reads and writes in turn, " + std::string(Space::name) + ", turn " + std::to_string(turn));
}

template <class Space>
std::size_t held() {
  return ferry::memory_statistics<Space>().current;
}
/// The owner's memory lives until the others have closed it.
template <class Space, class Exec>
void share_tensors(const Exec& exec, const ferry::communicator& comm) {
  const std::string name(Space::name);
  comm.barrier();  // the others have ended earlier tables
  ferry::trim<Space>();
  const std::size_t before = held<Space>();
  const bool owns = world_rank == 0;
  std::vector<ferry::tensor<float, Space>> parts, arrays;
  std::vector<ferry::shared_handle> handles(8);
  for (std::size_t i = 0; i < handles.size(); ++i) {  // small ones and large ones next to each other
    if (owns) {
      parts.emplace_back("shared " + std::to_string(i), 1 + (i % 3 == 0 ? 900000 : i), i + 1);
      ferry::init::constant(exec, parts.back(), static_cast<double>(i));
      handles[i] = ferry::share(parts.back());
    }
    handles[i] = comm.all_gather(handles[i]).front();
  }
  for (int twice = 0; twice < 2; ++twice)
    for (std::size_t i = 0; i < handles.size(); ++i) {
      arrays.push_back(ferry::open_shared<float, Space>(handles[i]));
      const auto values = read(exec, arrays.back());
      expect(values == std::vector<float>((1 + (i % 3 == 0 ? 900000 : i)) * (i + 1), static_cast<float>(i)) &&
                 arrays.back().label() == "shared " + std::to_string(i),
             "opened tensors, " + name + ", " + std::to_string(i));
    }
  comm.barrier();
  if (world_rank == comm.size() - 1) ferry::init::constant(exec, arrays[1], 77);
  comm.barrier();
  expect(read(exec, arrays[9]).back() == 77, "a write to shared memory, " + name);
  if (owns) expect(read(exec, parts[1]).front() == 77, "a write to a shared tensor, " + name);
  parts.clear();
  comm.barrier();
  expect(read(exec, arrays[3]).back() == 3, "memory whose tensor has ended, " + name);
  const std::vector<std::int64_t> last{2, 0};
  ferry::tensor<float, Space> out("out", 2, 3);
  ferry::gather(exec, arrays[2], last, out).wait();
  expect(read(exec, out) == std::vector<float>(6, 2), "rows of an opened tensor, " + name);
  if (owns) {
    ferry::trim<Space>();
    expect(held<Space>() > before + 4 * 900000, "memory in use is kept, " + name);
  }
  comm.barrier();
  arrays.clear();
  out = {};
  comm.barrier();
  ferry::trim<Space>();
  expect(held<Space>() == before, "memory that nobody uses, " + name + ": " + std::to_string(held<Space>()) +
                                      " bytes, before " + std::to_string(before));
  comm.barrier();  // rank 0 has freed it
  const auto text =
      said<ferry::invalid_argument>([&] { (void)ferry::open_shared<double, Space>(handles[0]); });
  expect(has(text, "double"), "a wrong type, " + name + ": " + text);
  expect(!said<ferry::invalid_argument>([&] { (void)ferry::open_shared<float, Space>(handles[0]); }).empty(),
         "a tensor that has ended, " + name);
  comm.barrier();
}

/// Ranks end their tables at different times.
template <class Space, class Exec>
void end_tables(const Exec& exec, const ferry::communicator& comm) {
  comm.barrier();
  ferry::trim<Space>();
  const std::size_t before = held<Space>();
  comm.barrier();
  for (int turn = 0; turn < 3; ++turn) {
    std::optional<ferry::sharded_table<float, Space>> big(std::in_place, "w", comm, 1000, 8);
    ferry::init::constant(exec, *big, turn);
    comm.barrier();
    if (world_rank % 2 == turn % 2) big.reset();
    comm.barrier();
    if (big.has_value()) {  // of shards whose tables have ended
      ferry::tensor<float, Space> out("out", 3, 8);
      ferry::gather(exec, *big, std::vector<int>{0, 501, 999}, out, ferry::path::peer{}).wait();
      expect(read(exec, out) == std::vector<float>(24, static_cast<float>(turn)), "rows of ended tables");
    }
    comm.barrier();
  }
  comm.barrier();
  ferry::trim<Space>();
  expect(held<Space>() == before, "shards that nobody reads, " + std::string(Space::name));
  comm.barrier();
}

/// If the shards can't be opened, the table serves all the same.
void refuse(const ferry::communicator& comm) {
  const host_exec exec;
  if (comm.size() == 1) return;
  const std::vector<int> ids{0, 1};
  const auto refused = [&](auto& table) {
    using space = typename std::remove_reference_t<decltype(table)>::memory_space;
    ferry::tensor<float, space> out("out", 2, 4);
    ferry::init::constant(exec, table, 3);
    ferry::gather(exec, table, ids, out).wait();
    expect(read(exec, out) == std::vector<float>(8, 3), "rows by messages");
    return said<ferry::invalid_argument>(
        [&] { ferry::gather(exec, table, ids, out, ferry::path::peer{}).wait(); });
  };
  ferry::sharded_table<float, host> mapped("mapped", comm, 10, 4);
  std::string text = refused(mapped);
  expect(has(text, "'mapped' [10 x 4]") && has(text, "in another process"), "host memory: " + text);
  process_space::refuses = world_rank == 0;
  ferry::sharded_table<float, process_space> closed("closed", comm, 10, 4);
  process_space::refuses = false;
  text = refused(closed);
  expect(has(text, world_rank == 0 ? "does not reach the memory" : "rank 0 could not share its own"),
         "shards that are not shared: " + text);
  comm.barrier();
}

}  // namespace

void device_tables(const ferry::communicator& comm) {
  for_each_space([&](const auto& exec, auto space) {
    using space_type = decltype(space);
    read_and_write_in_turn<space_type>(exec, comm);
    share_tensors<space_type>(exec, comm);
    if (comm.size() > 1) end_tables<space_type>(exec, comm);
  });
  refuse(comm);
}

}  // namespace ferry_test
