// SPDX-License-Identifier: Apache-2.0
// Forks the ranks of groups of processes, before Kokkos has threads, and ends them where they do not end.
#include "ranks/device_ranks.hpp"
#include "ranks/lane_ranks.hpp"
#include "ranks/rank_program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ferry_test;
using clock_type = std::chrono::steady_clock;

template <class Act>
pid_t forked(const Act& act) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(100);  // no rank outlives this
  act();
  std::fflush(nullptr);
  ::_exit(failures == 0 ? 0 : 1);
}
bool ended_well(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
std::string key_of(int turn) { return std::to_string(::getpid()) + "." + std::to_string(turn); }

/// All verbs and failures on `ranks` processes.
bool verbs(int ranks) {
  const std::string key = key_of(1000 + ranks);
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r)
    children.push_back(forked([&] {
      world_rank = r;
      const Kokkos::ScopeGuard guard(settings_of(r));
      int group = 0;
      run_all([&](const ferry::communicator_options& options) {
        return ferry::communicator::node(r, ranks, key + "." + std::to_string(group++), options);
      });
    }));
  bool well = true;
  for (const pid_t child : children) well = ended_well(child) && well;
  return well;
}

/// One of four processes is killed while the others are in a call, or between two; they notice at once.
/// `longest` becomes the time until all have ended where that is longer.
bool kill_one(int turn, std::chrono::duration<double>& longest) {
  const std::string key = key_of(turn);
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return false;
  std::vector<pid_t> children;
  for (int r = 0; r < 4; ++r)
    children.push_back(forked([&] {
      world_rank = r;
      const auto comm = ferry::communicator::node(r, 4, key, {.deadline = std::chrono::seconds(60)});
      comm.barrier();
      const char byte = 'x';
      expect(::write(pipe_ends[1], &byte, 1) == 1, "the pipe");
      const auto text = said<ferry::communication_error>([&] {
        for (;;) {
          comm.barrier();
          if (r == 2 && turn % 2 == 0) ::pause();
        }
      });
      expect(has(text, "ended"), "a killed rank: " + text);
    }));
  for (int r = 0; r < 4; ++r) {
    char byte;
    if (::read(pipe_ends[0], &byte, 1) != 1) return false;
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  ::usleep(static_cast<useconds_t>(turn % 100 * 300));
  ::kill(children[2], SIGKILL);
  const auto begin = clock_type::now();
  bool well = true;
  for (const int r : {0, 1, 3}) well = ended_well(children[static_cast<std::size_t>(r)]) && well;
  const std::chrono::duration<double> took = clock_type::now() - begin;
  longest = std::max(longest, took);
  const bool soon = took < std::chrono::seconds(20);
  int status = 0;
  ::waitpid(children[2], &status, 0);
  return well && soon;
}

/// One of the processes is killed while it reads the others' shards, or while all write.
bool kill_in(void (*act_until_killed)(const ferry::communicator&, int), int base, int ranks, int killed) {
  const std::string key = key_of(base + 10 * ranks + killed);
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r)
    children.push_back(forked([&] {
      world_rank = r;
      const Kokkos::ScopeGuard guard(settings_of(r));
      const auto comm = ferry::communicator::node(r, ranks, key, {.deadline = std::chrono::seconds(60)});
      act_until_killed(comm, killed);
    }));
  bool well = true;
  for (int r = 0; r < ranks; ++r)
    if (r != killed) well = ended_well(children[static_cast<std::size_t>(r)]) && well;
  int status = 0;
  ::waitpid(children[static_cast<std::size_t>(killed)], &status, 0);
  return well && WIFSIGNALED(status);
}

}  // namespace

/// An argument is the number of kills; nothing else is then tested.
int main(int argc, char** argv) {
  const int kills = argc > 1 ? std::atoi(argv[1]) : 20;
  std::chrono::duration<double> longest{0};
  for (int turn = 0; turn < kills; ++turn)
    if (!kill_one(turn, longest)) {
      std::fprintf(stderr, "turn %d of the kills failed\n", turn);
      return 1;
    }
  std::printf("%d kills, all noticed within %.3f s\n", kills, longest.count());
  if (argc > 1) return 0;
  for (const int ranks : {1, 2, 3, 4})
    if (!verbs(ranks)) {
      std::fprintf(stderr, "%d ranks failed\n", ranks);
      return 1;
    }
  for (const auto& [ranks, killed] : {std::pair{2, 1}, {3, 0}, {4, 2}})
    if (!kill_in(&read_until_killed, 2000, ranks, killed) ||
        !kill_in(&write_until_killed, 3000, ranks, killed)) {
      std::fprintf(stderr, "rank %d of %d was killed while it read or wrote\n", killed, ranks);
      return 1;
    }
  const auto text = said<ferry::communication_error>([&] {
    (void)ferry::communicator::node(0, 2, key_of(-1), {.deadline = std::chrono::milliseconds(200)});
  });
  return has(text, "have not come") ? 0 : 1;
}
