// SPDX-License-Identifier: Apache-2.0
// An array of the user's must hold elements as well.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string>
#include <vector>

struct names {
  std::vector<std::string> memory;
};

template <>
struct ferry::array_traits<names> {
  using value_type = std::string;
  using memory_space = ferry::pageable_space;
  static constexpr std::size_t static_width = 1;
  static auto ref(names& array) { return ferry::make_ref(array.memory); }
  static auto ref(const names& array) { return ferry::make_ref(array.memory); }
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  names mine;
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch).wait();
#else
  ferry::scatter(exec, mine, indices, batch).wait();
#endif
}
