// SPDX-License-Identifier: Apache-2.0
// Two, three or four MPI processes save a sharded table in a loop. All of them, or one, are killed at random points.
// After each kill the checkpoint of the last save that returned loads as an ordinary one, or the one after it, and
// every bit is right. The next processes go on from it, another number of them with another sharding. With CUDA the
// processes take the devices in turn. The argument is the program that starts MPI processes.
#include <ferry/distributed.hpp>
#include <ferry/distributed/mpi.hpp>
#include <ferry/io.hpp>

#include "process/check.hpp"
#include "ranks/rank_program.hpp"

#include <fcntl.h>
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

constexpr int kills = 20;
constexpr std::size_t rows = 60000, width = 48;  // 11 MiB, three chunks
using clock_type = std::chrono::steady_clock;

/// The progress of the saving processes, in memory that survives them.
struct progress {
  std::atomic<std::int64_t> begun{0};
  std::atomic<std::int64_t> ended{0};             ///< saves that returned on rank 0
  std::atomic<std::int64_t> microseconds{60000};  ///< of the last of them
  std::atomic<int> processes[4] = {};             ///< by rank
};

/// The memory of a file of that size.
progress& progress_in(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(progress)) != 0) std::_Exit(5);
  void* const memory = ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::_Exit(5);
  ::close(file);
  return *static_cast<progress*>(memory);
}

/// The number of processes of a round.
int ranks_of(int kill) { return 2 + kill / 2 % 3; }

float value(std::int64_t turn, std::int64_t row, std::size_t column) {
  return static_cast<float>((turn * 31 + row) % 1009) + static_cast<float>(column);
}

/// Saves until it is killed, or another rank has been.
template <class Spread>
void save_for_ever(const std::string& path, progress& state) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Kokkos::ScopeGuard kokkos(ferry_test::settings_of(rank));
  const auto comm = ferry::mpi::communicator(MPI_COMM_WORLD);
  state.processes[rank] = ::getpid();
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

[[noreturn]] void act(int kind, const std::string& path, progress& state) {
  ::alarm(60);  // no rank outlives this
  MPI_Init(nullptr, nullptr);
  try {
    if (kind % 2 == 0)
      save_for_ever<ferry::sharding::cyclic>(path, state);
    else
      save_for_ever<ferry::sharding::hashed<3>>(path, state);
  } catch (const ferry::communication_error&) {  // another rank was killed
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "%s\n", lost.what());
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

int main(int argc, char** argv) {
  if (argc == 4) act(std::atoi(argv[1]), argv[2], progress_in(argv[3]));
  if (argc != 2) return 2;
  std::string folder =
      (std::getenv("TMPDIR") != nullptr ? std::string(std::getenv("TMPDIR")) : std::string("/tmp")) +
      "/ferry_killed_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string path = folder + "/run", file = folder + "/progress";
  auto& state = *new (&progress_in(file)) progress;
  std::mt19937 random(std::random_device{}());
  int killed_in_saves = 0;
  for (int kill = 0; kill < kills && failures == 0; ++kill) {
    const std::int64_t begun = state.begun;
    const int ranks = ranks_of(kill);
    std::fflush(nullptr);
    const pid_t job = ::fork();
    if (job < 0) return 1;
    if (job == 0) {
      const std::string count = std::to_string(ranks), kind = std::to_string(kill);
      ::execl(argv[1], argv[1], "-n", count.c_str(), "--allow-run-as-root", "--oversubscribe", argv[0],
              kind.c_str(), path.c_str(), file.c_str(), nullptr);
      std::_Exit(6);
    }
    // The clock starts with the first save, so that most kills hit one.
    int status = 0;
    bool lost = false;
    while (state.begun == begun && !lost) {
      lost = ::waitpid(job, &status, WNOHANG) != 0;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    FERRY_TEST_CHECK(!lost);
    if (lost) break;
    const auto most = std::min<std::int64_t>(300000, 5 * state.microseconds / 2);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
    const int victim = kill % (ranks + 1);  // or all of them
    for (int r = 0; r < ranks; ++r)
      if (victim == ranks || victim == r) ::kill(state.processes[r], SIGKILL);
    FERRY_TEST_CHECK(::waitpid(job, &status, 0) == job);
    FERRY_TEST_CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    for (int r = 0; r < ranks; ++r)  // its children may end after it
      while (::kill(state.processes[r], 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    killed_in_saves += state.begun > state.ended ? 1 : 0;
    check(path, state);
  }
  std::printf("%d kills, %d of them within a save, %lld saves\n", kills, killed_in_saves,
              static_cast<long long>(state.ended));
  FERRY_TEST_CHECK(killed_in_saves > 0);
  for (const auto& name : ferry::detail::names_in(path)) ::unlink((path + "/" + name).c_str());
  ::unlink(file.c_str());
  ::rmdir(path.c_str());
  ::rmdir(folder.c_str());
  return failures == 0 ? 0 : 1;
}
