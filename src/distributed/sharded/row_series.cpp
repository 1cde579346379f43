// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/row_series.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace ferry::detail {

namespace {

/// Longer strides are left to lists: common_rows looks for the first common row stride by stride.
constexpr std::int64_t longest_stride = std::int64_t{1} << 16;

}  // namespace

row_series common_rows(const row_series& a, const row_series& b) {
  if (a.count == 0 || b.count == 0) return {};
  const std::int64_t cycle = b.stride / std::gcd(a.stride, b.stride);
  row_series common{a.first, a.stride * cycle, 0};
  std::int64_t steps = 0;  // of a, to a row that has the rest of those of b
  while (steps < cycle && (common.first - b.first) % b.stride != 0) {
    common.first += a.stride;
    ++steps;
  }
  if (steps == cycle) return {};
  if (common.first < b.first)
    common.first += (b.first - common.first + common.stride - 1) / common.stride * common.stride;
  const std::int64_t last = std::min(a.last(), b.last());
  if (common.first <= last) common.count = (last - common.first) / common.stride + 1;
  return common;
}

bool is_series(const kernels::global_rows& numbers, std::int64_t count) {
  if (count == 0) return true;
  return numbers.numbers == nullptr && numbers.scramble.is_identity() &&
         (count == 1 || (numbers.stride >= 1 && numbers.stride <= longest_stride));
}

}  // namespace ferry::detail
