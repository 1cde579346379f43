// A pointer says neither extents nor space.
// expected-error: tables and batches must be a ferry::tensor, a tensor_view, a Kokkos::View, a std::span, a
// std::vector, or a type with ferry::array_traits
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::init::zeros(exec, table);
#else
  ferry::init::zeros(exec, table.data());
#endif
}
