// SPDX-License-Identifier: Apache-2.0
// Their bytes are not their values: a load would give pointers of another process to destructors.
// expected-errors: 6 a checkpoint saves the bytes of an array, so its elements must be trivially copyable
// most-lines: 80
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::io::checkpoint run("run.ckpt");
  std::vector<std::string> titles(3);
  std::vector<std::vector<float>> lists(2);
  [[maybe_unused]] std::vector<std::unique_ptr<float>> owned(2);
  [[maybe_unused]] std::array<std::string, 2> pair;
  [[maybe_unused]] std::span<std::string> part(titles);
  [[maybe_unused]] Kokkos::View<std::string*, Kokkos::HostSpace> view;
#ifdef FERRY_XFAIL_FIXED
  run.add("titles", titles);
  run.add("first list", lists[0]);
  run.add("second list", lists[1]);
#else
  run.add("lists", lists);
  run.add("owned", owned);
  run.add("pair", pair);
  run.add("part", part);
  run.add("view", view);
  run.add("const view", std::as_const(view));
#endif
}
