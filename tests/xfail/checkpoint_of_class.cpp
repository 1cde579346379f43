// SPDX-License-Identifier: Apache-2.0
// Its bytes are not its value.
// expected-errors: 2 a checkpoint holds arrays
// most-lines: 30
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <map>
#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  struct titled {
    std::string title;
    int year = 0;
  };
  ferry::io::checkpoint run("run.ckpt");
  titled book;
  [[maybe_unused]] std::map<int, int> counts;
#ifdef FERRY_XFAIL_FIXED
  run.add("title", book.title);
  run.add("year", book.year);
#else
  run.add("book", book);
  run.add("counts", counts);
#endif
}
