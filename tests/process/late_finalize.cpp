// SPDX-License-Identifier: Apache-2.0
// Kokkos::finalize runs at exit, after the destructors of all objects with static storage that were made since.
// Verbs, profiles and statistics must not have objects of that kind that finalize needs.
#include <ferry/ferry.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

bool finalized = false;

void finalize_at_exit() {
  Kokkos::finalize();
  finalized = true;
}

/// Destroyed after finalize_at_exit, as it is made before.
struct last_look {
  ~last_look() {
    std::printf("finalized: %d\n", finalized ? 1 : 0);
    if (!finalized) std::_Exit(1);
  }
};

}  // namespace

int main(int argc, char* argv[]) {
  static const last_look look;
  Kokkos::initialize(argc, argv);
  std::atexit(finalize_at_exit);

  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 100, 8);
  ferry::init::uniform(exec, table, -1.0f, 1.0f, 1);
  ferry::tensor<float, ferry::device_space> rows("rows", 3, 8);
  const std::vector<int> indices{5, 99, 5};
  ferry::gather(exec, table, indices, rows).wait();
  ferry::scatter_add(exec, table, indices, rows).detach();
  ferry::machine_profile profile;
  profile.call_us = 3.25;
  ferry::use_profile(exec, profile);
  if (ferry::current_profile(exec) != profile) return EXIT_FAILURE;
  static_cast<void>(ferry::memory_statistics<ferry::mapped_space>());
  return EXIT_SUCCESS;
}
