// SPDX-License-Identifier: Apache-2.0
// Its bytes mean nothing in another process.
// expected-errors: 6 a checkpoint can't hold pointers or views of text
// most-lines: 80
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <string>
#include <string_view>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::io::checkpoint run("run.ckpt");
  std::string title = "title";
  [[maybe_unused]] std::string_view view = title;
  float number = 1;
  [[maybe_unused]] float* pointer = &number;
  [[maybe_unused]] const char* text = "text";
  [[maybe_unused]] std::vector<float*> list(3);
  [[maybe_unused]] std::vector<std::string_view> views(3);
  [[maybe_unused]] Kokkos::View<std::string_view*, Kokkos::HostSpace> array;
#ifdef FERRY_XFAIL_FIXED
  run.add("title", title);
  run.add("number", *pointer);
#else
  run.add("title", view);
  run.add("number", pointer);
  run.add("text", text);
  run.add("list", list);
  run.add("views", views);
  run.add("array", array);
#endif
}
