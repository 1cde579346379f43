// SPDX-License-Identifier: Apache-2.0
// Two, three or four processes save a sharded table in a loop. All of them, or one, are killed at random points.
// After each kill the checkpoint of the last save that returned loads as an ordinary one, or the one after it, and
// every bit is right. The next processes go on from it, another number of them with another sharding. Some are
// stopped instead, until the others have given up, and go on while the next processes save. With CUDA the
// processes take the devices in turn.
#include <ferry/distributed.hpp>
#include <ferry/io.hpp>

#include "process/check.hpp"
#include "ranks/rank_program.hpp"

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kills = 60;
constexpr std::size_t rows = 60000, width = 48;  // 11 MiB, three chunks
using clock_type = std::chrono::steady_clock;

/// The progress of the saving processes, in memory that survives them.
struct progress {
  std::atomic<std::int64_t> begun{0};
  std::atomic<std::int64_t> ended{0};             ///< saves that returned on rank 0
  std::atomic<std::int64_t> microseconds{60000};  ///< of the last of them
};

/// The number of processes of a round.
int ranks_of(int kill) { return 2 + kill / 2 % 3; }

/// True if a round stops a process.
bool stops(int kill) { return kill % 15 == 7; }

float value(std::int64_t turn, std::int64_t row, std::size_t column) {
  return static_cast<float>((turn * 31 + row) % 1009) + static_cast<float>(column);
}

/// Saves until it is killed, or another rank has been.
template <class Spread>
void save_for_ever(int rank, int ranks, const std::string& key, const std::string& path, progress& state,
                   std::chrono::seconds deadline) {
  const Kokkos::ScopeGuard kokkos(ferry_test::settings_of(rank));
  const auto comm = ferry::communicator::node(rank, ranks, key, {.deadline = deadline});
  ferry::sharded_table<float, ferry::pageable_space, Spread> table("w", comm, rows, width);
  std::int64_t turn = 0;
  ferry::io::checkpoint run(path);
  run.add("turn", turn);
  run.add("table", table);
  if (state.ended > 0) {
    run.load();
    if (turn != state.ended || table.local_view()(0, 1) != value(turn, table.global_row(rank, 0), 1))
      std::_Exit(4);
  }
  comm.barrier();
  for (++turn;; ++turn) {
    auto& shard = table.shard(rank);
    for (std::size_t r = 0; r < shard.rows(); ++r)
      for (std::size_t c = 0; c < width; ++c)
        shard(r, c) = value(turn, table.global_row(rank, static_cast<std::int64_t>(r)), c);
    if (rank == 0) state.begun = turn;
    const auto start = clock_type::now();
    run.save();
    if (rank != 0) continue;
    state.ended = turn;
    state.microseconds =
        std::chrono::duration_cast<std::chrono::microseconds>(clock_type::now() - start).count();
  }
}

[[noreturn]] void act(int rank, int kind, const std::string& key, const std::string& path, progress& state) {
  const std::chrono::seconds deadline(stops(kind) ? 3 : 50);
  ::alarm(60);  // no rank outlives this
  try {
    if (kind % 2 == 0)
      save_for_ever<ferry::sharding::cyclic>(rank, ranks_of(kind), key, path, state, deadline);
    else
      save_for_ever<ferry::sharding::hashed<3>>(rank, ranks_of(kind), key, path, state, deadline);
  } catch (const ferry::communication_error&) {
    std::_Exit(0);  // another rank was killed
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "rank %d: %s\n", rank, lost.what());
  }
  std::_Exit(3);
}

void check(const std::string& path, progress& state) {
  std::int64_t turn = 0;
  std::vector<float> whole(rows * width);
  const ferry::tensor_view<float, ferry::pageable_space> table(whole.data(), rows, width);
  ferry::io::checkpoint run(path);
  run.add("turn", turn);
  run.add("table", table);
  try {
    run.load();
  } catch (const ferry::error& lost) {
    if (state.ended == 0) return;  // killed in the first save
    std::puts(lost.what());
    FERRY_TEST_CHECK(false);
    return;
  }
  FERRY_TEST_CHECK(turn == state.ended || turn == state.ended + 1);
  FERRY_TEST_CHECK(turn <= state.begun);
  bool same = true;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < width; ++c)
      same = same && whole[r * width + c] == value(turn, static_cast<std::int64_t>(r), c);
  FERRY_TEST_CHECK(same);
  state.ended = turn;
  state.begun = turn;
}

}  // namespace

int main() {
  std::string folder =
      (std::getenv("TMPDIR") != nullptr ? std::string(std::getenv("TMPDIR")) : std::string("/tmp")) +
      "/ferry_killed_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string path = folder + "/run";
  void* const memory =
      ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& state = *new (memory) progress;
  std::mt19937 random(std::random_device{}());
  std::int64_t saves = 0;
  int killed_in_saves = 0;
  pid_t late = 0;  // the stopped one
  for (int kill = 0; kill < kills && failures == 0; ++kill) {
    const std::int64_t begun = state.begun;
    const int ranks = ranks_of(kill);
    std::fflush(nullptr);
    const std::string key = std::to_string(::getpid()) + ".killed." + std::to_string(kill);
    std::vector<pid_t> children;
    for (int r = 0; r < ranks; ++r) {
      const pid_t child = ::fork();
      if (child < 0) return 1;
      if (child == 0) act(r, kill, key, path, state);
      children.push_back(child);
    }
    // The clock starts with the first save, so that most kills hit one.
    int status = 0;
    bool lost = false;
    while (state.begun == begun && !lost) {
      lost = ::waitpid(children[0], &status, WNOHANG) != 0;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    FERRY_TEST_CHECK(!lost || stops(kill));  // on a loaded machine 3 s may pass
    if (late != 0) ::kill(late, SIGCONT);
    const auto most = std::min<std::int64_t>(300000, 5 * state.microseconds / 2);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
    const int victim = stops(kill) ? 1 + kill % (ranks - 1) : kill % (ranks + 1);  // or all of them
    for (int r = lost ? 1 : 0; r < ranks; ++r)
      if (victim == ranks || victim == r)
        ::kill(children[static_cast<std::size_t>(r)], stops(kill) ? SIGSTOP : SIGKILL);
    const auto ends = [&](pid_t child, bool killed) {
      FERRY_TEST_CHECK(::waitpid(child, &status, 0) == child);
      const bool by_kill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      const bool by_itself = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      // When all are killed, one may notice the first kill before its own.
      const bool well = killed ? by_kill || (victim == ranks && by_itself) : by_itself;
      if (!well) std::printf("kill %d of %d ranks: a process ended with status %d\n", kill, ranks, status);
      FERRY_TEST_CHECK(well);
    };
    if (late != 0) ends(late, false);
    late = 0;
    for (int r = lost ? 1 : 0; r < ranks; ++r) {
      const pid_t child = children[static_cast<std::size_t>(r)];
      if (stops(kill) && victim == r)
        late = child;
      else
        ends(child, victim == ranks || victim == r);
    }
    killed_in_saves += state.begun > state.ended ? 1 : 0;
    saves = state.ended;
    check(path, state);
  }
  if (late != 0) ::kill(late, SIGKILL);
  std::printf("%d kills, %d of them within a save, %lld saves\n", kills, killed_in_saves,
              static_cast<long long>(saves));
  FERRY_TEST_CHECK(killed_in_saves > 0);
  for (const auto& name : ferry::detail::names_in(path)) ::unlink((path + "/" + name).c_str());
  ::rmdir(path.c_str());
  ::rmdir(folder.c_str());
  return failures == 0 ? 0 : 1;
}
