// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ranks/rank_program.hpp"

#include <ferry/io.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/// Checkpoints of sharded tables over processes.
namespace ferry_test {

/// A folder of rank 0's, which all ranks know; gone at the end.
class folder_of_ranks {
 public:
  explicit folder_of_ranks(const ferry::communicator& comm) : makes_(comm.rank() <= 0) {
    std::array<char, 200> name{};
    if (makes_) {
      const char* const temporary = std::getenv("TMPDIR");
      std::string path = std::string(temporary == nullptr ? "/tmp" : temporary) + "/ferry_ranks_XXXXXX";
      if (::mkdtemp(path.data()) != nullptr) path.copy(name.data(), name.size() - 1);
    }
    path_ = comm.all_gather(name).front().data();
  }
  folder_of_ranks(const folder_of_ranks&) = delete;
  folder_of_ranks& operator=(const folder_of_ranks&) = delete;
  ~folder_of_ranks() {
    if (!makes_) return;
    for (const auto& name : ferry::detail::names_in(path())) ::unlink((path() + "/" + name).c_str());
    ::rmdir(path().c_str());
    ::rmdir(path_.c_str());
  }
  [[nodiscard]] std::string path() const { return path_ + "/run"; }

 private:
  bool makes_;
  std::string path_;
};

inline void checkpoints(const ferry::communicator& comm, const group_maker& make_group) {
  using tensor = ferry::tensor<float, ferry::mapped_space>;
  const Kokkos::DefaultExecutionSpace exec;
  const int acting = comm.rank() < 0 ? 0 : comm.rank(), ranks = comm.size();
  constexpr std::size_t count = 101, columns = 20001;  // 8 MB, rows of 78 KiB
  const ferry::optim::sgd rule{.lr = 0.1, .momentum = 0.9};
  const folder_of_ranks folder(comm);
  tensor plain("w", count, columns), read("w", count, columns), grads("grads", 3, columns);
  ferry::init::uniform(exec, plain, -1, 1, 3);
  ferry::init::uniform(exec, grads, -1, 1, 4);
  auto plain_state = ferry::optim::make_state(rule, plain);
  auto read_state = ferry::optim::make_state(rule, read);
  std::int64_t turn = 5;
  const std::vector<std::int64_t> mine{acting, 50, 99};
  std::vector<std::int64_t> ids;
  for (int r = 0; r < ranks; ++r) ids.insert(ids.end(), {r, 50, 99});
  tensor every("grads", ids.size(), columns);
  for (std::size_t i = 0; i < ids.size() / 3; ++i)
    std::memcpy(every.data() + i * grads.size(), grads.data(), grads.size() * sizeof(float));
  constexpr ferry::step_count::per_row counted{};
  const auto step = [&](auto& table, auto& state) {
    ferry::step(exec, rule, table, state, mine, grads, counted).wait();
    ferry::step(exec, rule, plain, plain_state, ids, every, counted).wait();
  };
  {
    ferry::sharded_table<float, ferry::mapped_space> table("w", comm, count, columns);
    ferry::init::uniform(exec, table, -1, 1, 3);
    auto state = ferry::optim::make_state(rule, table);
    step(table, state);
    ferry::io::checkpoint run(folder.path());
    run.add("weights", table);
    run.add("sgd", rule, state);
    run.add("turn", turn);
    run.save();
  }
  {
    turn = 0;
    ferry::sharded_table<float, ferry::mapped_space, ferry::sharding::hashed<9>> table("w", comm, count,
                                                                                       columns);
    auto state = ferry::optim::make_state(rule, table);
    ferry::io::checkpoint run(folder.path());
    run.add("weights", table);
    run.add("sgd", rule, state);
    run.add("turn", turn);
    run.load();
    expect(turn == 5 && state.steps() == 1, "a number of a checkpoint");
    step(table, state);
    run.save();
  }
  ferry::io::checkpoint ordinary(folder.path());
  ordinary.add("weights", read);
  ordinary.add("sgd", rule, read_state);
  ordinary.add("turn", turn);
  ordinary.load();
  expect(std::memcmp(read.data(), plain.data(), read.size() * sizeof(float)) == 0, "a loaded table");
  expect(
      std::memcmp(read_state.field(0).data(), plain_state.field(0).data(), read.size() * sizeof(float)) == 0,
      "a loaded state");
  expect(read_state.row_steps()(50) == plain_state.row_steps()(50), "counters of rows");
  comm.barrier();

  // One rank differs; one can't see the folder. The old checkpoint stays.
  if (ranks > 1) {
    const auto differs = make_group({});
    turn = acting == ranks - 1 ? 6 : 5;
    ferry::sharded_table<float, ferry::mapped_space> small("w", differs, 7, 3);
    ferry::init::zeros(exec, small);
    ferry::io::checkpoint run(folder.path());
    run.add("weights", small);
    run.add("turn", turn);
    const auto text = error_of([&] { run.save(); });
    expect(text.rfind("protocol: ", 0) == 0, "numbers that differ: " + text);
    ferry::sharded_table<float, ferry::mapped_space, ferry::sharding::table_wise> last("w", comm, 7, 3,
                                                                                       {.rank = ranks - 1});
    ferry::init::zeros(exec, last);
    ferry::io::checkpoint lost(acting == ranks - 1 ? folder.path() + "/missing" : folder.path());
    lost.add("weights", last);
    const auto why = error_of([&] { lost.save(); });
    expect(why.rfind(acting == ranks - 1 ? "own: " : "peer: ", 0) == 0 &&
               why.find("No such file") != std::string::npos,
           "a rank without the folder: " + why);
    comm.barrier();
    ferry::init::zeros(exec, read);
    ordinary.load();
    expect(std::memcmp(read.data(), plain.data(), read.size() * sizeof(float)) == 0, "the old checkpoint");
    comm.barrier();
  }
}

}  // namespace ferry_test
