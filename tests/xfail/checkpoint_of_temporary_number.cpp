// SPDX-License-Identifier: Apache-2.0
// load() could not write it, and a save would read what has ended.
// expected-errors: 3 a checkpoint keeps a reference to the object, so that must be a variable
// most-lines: 40
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <random>
#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::io::checkpoint run("run.ckpt");
#ifdef FERRY_XFAIL_FIXED
  const int first = 1;
  std::string title = "title";
  std::mt19937 engine(3);
  run.add("one", first);
  run.add("title", title);
  run.add("engine", engine);
#else
  run.add("one", 1);
  run.add("title", std::string("title"));
  run.add("engine", std::mt19937(3));
#endif
}
