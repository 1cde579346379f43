// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include "check.hpp"

#include <Kokkos_Core.hpp>

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

/// A process that saves in a loop is killed at random points. After each kill the checkpoint of the last save
/// that returned loads, or the one after it, and every bit is right.
namespace {

constexpr int kills = 200;
constexpr std::size_t rows = 30000, width = 48;  // 5.5 MiB, two chunks

/// The progress of the saving process, in memory that survives it.
struct progress {
  std::atomic<std::int64_t> begun{0};
  std::atomic<std::int64_t> ended{0};             ///< saves that returned
  std::atomic<std::int64_t> microseconds{60000};  ///< of the last of them
};

/// The contents of save number `turn`: from one to the next a few rows change.
struct contents {
  std::int64_t turn = 0;
  std::vector<float> table = std::vector<float>(rows * width, 1.0f);
  std::vector<std::uint8_t> small = std::vector<std::uint8_t>(1001, 0);

  void go_to(std::int64_t next) {
    turn = next;
    for (std::size_t i = 0; i < small.size(); ++i)
      small[i] = static_cast<std::uint8_t>(next + static_cast<std::int64_t>(i));
    for (std::size_t r = 0; r < rows; ++r) {
      const float value = static_cast<float>((next + static_cast<std::int64_t>(r % 97)) / 97);
      for (std::size_t c = 0; c < width; ++c) table[r * width + c] = value + static_cast<float>(c);
    }
  }
  void add_to(ferry::io::checkpoint& run) {
    run.add("turn", turn);
    run.add("table", table);
    run.add("small", small);
  }
};

/// Saves until it is killed. Every fourth process saves in the background, which needs an instance.
[[noreturn]] void save_for_ever(const std::string& path, int kind, progress& state) {
  const auto work = [&] {
    contents now;
    ferry::io::checkpoint run(path);
    now.add_to(run);
    if (state.ended > 0) run.load();
    for (std::int64_t turn = now.turn + 1;; ++turn) {
      now.go_to(turn);
      state.begun = turn;
      const auto start = std::chrono::steady_clock::now();
      if (kind == 3)
        run.save_async(Kokkos::DefaultHostExecutionSpace{}).wait();
      else
        run.save({.changes = kind != 0 && turn % 3 != 1 && turn > 1});
      state.ended = turn;
      state.microseconds =
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start)
              .count();
    }
  };
  try {
    if (kind == 3) Kokkos::initialize();
    work();
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "%s\n", lost.what());
  }
  std::_Exit(3);
}

void check(const std::string& path, const progress& state) {
  if (state.begun == 0) return;
  contents actual, expected;
  ferry::io::checkpoint run(path);
  actual.add_to(run);
  try {
    run.load();
  } catch (const ferry::error& lost) {
    if (state.ended == 0) return;  // killed in the first save
    std::puts(lost.what());
    FERRY_TEST_CHECK(false);
    return;
  }
  FERRY_TEST_CHECK(actual.turn == state.ended || actual.turn == state.ended + 1);
  FERRY_TEST_CHECK(actual.turn <= state.begun);
  expected.go_to(actual.turn);
  FERRY_TEST_CHECK(actual.table == expected.table);
  FERRY_TEST_CHECK(actual.small == expected.small);
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
  for (int kill = 0; kill < kills && failures == 0; ++kill) {
    const std::int64_t begun = state.begun;
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child == 0) save_for_ever(path, kill % 4, state);
    // The clock starts with the child's first save, so that most kills hit one.
    while (state.begun == begun && ::waitpid(child, nullptr, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    // Anywhere in the first two or three saves.
    const auto most = std::min<std::int64_t>(150000, 5 * state.microseconds / 2);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
    ::kill(child, SIGKILL);
    int status = 0;
    const bool ended_before = ::waitpid(child, &status, 0) != child || !WIFSIGNALED(status);
    FERRY_TEST_CHECK(!ended_before);
    killed_in_saves += state.begun > state.ended ? 1 : 0;
    saves = state.ended;
    check(path, state);
    // A save that was killed after its rename is a save, too.
    if (state.begun > state.ended) {
      std::int64_t turn = 0;
      ferry::io::checkpoint run(path);
      run.add("turn", turn);
      try {
        run.load({.partial = true});
        state.ended = turn;
      } catch (const ferry::error&) {
      }
      state.begun = state.ended.load();
    }
  }
  std::printf("%d kills, %d of them within a save, %lld saves\n", kills, killed_in_saves,
              static_cast<long long>(saves));
  FERRY_TEST_CHECK(killed_in_saves > 0);
  for (const auto& name : ferry::detail::names_in(path)) ::unlink((path + "/" + name).c_str());
  ::rmdir(path.c_str());
  ::rmdir(folder.c_str());
  return failures == 0 ? 0 : 1;
}
