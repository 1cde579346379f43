// SPDX-License-Identifier: Apache-2.0
// The findings of detached work that nobody waits for: Kokkos::finalize prints each of them once. A child of
// fork() prints none of its parent's.
#include <ferry/ferry.hpp>

#include "../support/captured_stderr.hpp"
#include "check.hpp"

#include <Kokkos_Core.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char* argv[]) {
  using ferry_test::count_of;
  using exec_space = Kokkos::DefaultExecutionSpace;
  Kokkos::initialize(argc, argv);
  ferry_test::captured_stderr output;
  ferry::ticket late;
  {
    const exec_space exec;
    ferry::tensor<float, ferry::mapped_space> weights("weights", 8, 4);
    ferry::tensor<float, ferry::device_space> grads("grads", 2, 4), rows("rows", 2, 4);
    ferry::init::constant(exec, weights, 1);
    ferry::init::constant(exec, grads, 1);
    const ferry::optim::sgd rule{.lr = 0.5};
    auto state = ferry::optim::make_state(rule, weights);
    ferry::step(exec, rule, weights, state, std::vector<std::int32_t>{1, 99}, grads).detach();
    ferry::gather(exec, weights, std::vector<std::int32_t>{-1, 2}, rows).detach();
    ferry::gather(exec, weights, std::vector<std::int32_t>{3, 2}, rows).detach();
    bool thrown = false;
    try {
      ferry::gather(exec, weights, std::vector<std::int32_t>{3, 2}, rows).wait();
    } catch (const ferry::out_of_range& said) {
      thrown = count_of(said.what(), "ferry::step: 1 of 2 indices are outside of 'weights' [8 x 4]") == 1;
    }
    FERRY_TEST_CHECK(thrown);
    late = ferry::gather(exec, weights, std::vector<std::int32_t>{77, 2}, rows);
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    int status = -1;
    ::waitpid(child, &status, 0);
    FERRY_TEST_CHECK(status == 0);
    late.detach();
  }
  Kokkos::finalize();
  const std::string text = output.text();
  FERRY_TEST_CHECK(count_of(text, "nobody waited for this error") == 2);
  FERRY_TEST_CHECK(count_of(text, "index -1 at position 0") == 1);
  FERRY_TEST_CHECK(count_of(text, "index 77 at position 0") == 1);
  FERRY_TEST_CHECK(count_of(text, "index 99") == 0);
  if (failures != 0) std::fputs(text.c_str(), stdout);
  return failures == 0 ? 0 : 1;
}
