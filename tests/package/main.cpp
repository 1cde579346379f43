// SPDX-License-Identifier: Apache-2.0
// A table of rows whose values say where they stand, a batch of rows gathered from it, and a comparison of
// each value.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ferry/ferry.hpp>
#include <vector>

namespace {

constexpr std::int64_t rows = 1000;
constexpr std::int64_t width = 16;

float value_at(std::int64_t row, std::int64_t column) { return static_cast<float>(row * width + column); }

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  Kokkos::DefaultExecutionSpace exec;

  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < width; ++column) values.push_back(value_at(row, column));
  }
  const std::vector<std::int64_t> indices{0, 999, 7, 7, 512, 1};
  const auto count = static_cast<std::int64_t>(indices.size());

  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> batch("batch", count, width);
  ferry::tensor<float, ferry::pageable_space> source("source", rows, width);
  ferry::tensor<float, ferry::pageable_space> result("result", count, width);

  std::copy(values.begin(), values.end(), source.data());
  ferry::copy(exec, source, table).wait();
  ferry::gather(exec, table, indices, batch).wait();
  ferry::copy(exec, batch, result).wait();

  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t column = 0; column < width; ++column) {
      const float actual = result.data()[i * width + column];
      const float expected = value_at(indices[static_cast<std::size_t>(i)], column);
      if (actual != expected) {
        std::printf("row %lld, column %lld: %g instead of %g\n", static_cast<long long>(i),
                    static_cast<long long>(column), static_cast<double>(actual),
                    static_cast<double>(expected));
        return EXIT_FAILURE;
      }
    }
  }
  std::printf("ferry %d.%d.%d gathered %lld rows on %s\n", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR,
              FERRY_VERSION_PATCH, static_cast<long long>(count), exec.name());
  return EXIT_SUCCESS;
}
