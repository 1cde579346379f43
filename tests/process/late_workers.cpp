// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/parallel.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

/// A program whose Kokkos::finalize is called at exit, among the destructors of objects with static storage
/// that use the worker pool themselves: it must end, with all threads joined, and do what it was told.
namespace {

int runs_that_went_wrong = 0;

void run_once() {
  std::atomic<int> ran{0};
  ferry::detail::worker_team workers(3, 4);
  workers.run([&](int) { ++ran; });
  if (ran != 1 + workers.helpers() || workers.helpers() == 0) ++runs_that_went_wrong;
}

/// Destroyed after finalize, being made before main().
struct made_early {
  ~made_early() {
    run_once();
    if (runs_that_went_wrong == 0) return;
    std::puts("a worker team did not do its work");
    std::_Exit(1);
  }
} early;

/// Destroyed before finalize.
struct made_late {
  ~made_late() { run_once(); }
};

}  // namespace

int main(int argc, char* argv[]) {
  run_once();  // before Kokkos knows of it
  Kokkos::initialize(argc, argv);
  if (std::atexit([] { Kokkos::finalize(); }) != 0) return 1;
  static const made_late late;
  run_once();
  return 0;
}
