// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

/// The sort of keys in one launch, on both sides of every size at which it does something else.
namespace ferry_test {

namespace {

using sort = ferry::cuda::sort_functions;
using limits = ferry::cuda::grid_sort;

/// Sorts keys (row, position) by their rows, with everything else that the sort may touch poisoned.
void check_sorted(std::size_t count, int key_bits, const std::function<std::uint64_t(std::size_t)>& row) {
  CAPTURE(count, key_bits);
  const exec_space exec;
  const int position_bits = static_cast<int>(std::bit_width(count - 1));
  const std::uint64_t rows = key_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << key_bits) - 1;
  std::vector<std::uint64_t> keys(count);
  for (std::size_t p = 0; p < count; ++p) keys[p] = (row(p) & rows) << position_bits | p;

  const auto n = static_cast<std::int64_t>(count);
  const auto bytes = sort::sort_keys_bytes(n, position_bits, position_bits + key_bits);
  auto unsorted = make<ferry::device_space>("keys", count, 1, keys);
  auto other =
      make<ferry::device_space>("other", count, 1, std::vector<std::uint64_t>(count, ~std::uint64_t{0} / 3));
  auto room = make<ferry::device_space>("room", bytes, 1, std::vector<std::uint8_t>(bytes, 0xa5));
  std::uint64_t* sorted = unsorted.data();
  sort::sort_keys(exec, sorted, other.data(), n, position_bits, position_bits + key_bits, room.data(), bytes);
  exec.fence("ferry_test::sort");
  REQUIRE((sorted == unsorted.data() || sorted == other.data()));

  std::sort(keys.begin(), keys.end());
  CHECK((sorted == other.data() ? take(other) : take(unsorted)) == keys);
}

void check_rows(std::size_t count, int key_bits) {
  auto random = generator(static_cast<unsigned int>(1000 + count % 977));
  check_sorted(count, key_bits, [&](std::size_t) { return random(); });
}

}  // namespace

TEST_CASE("keys are sorted on both sides of what a thread and the device hold", "[kernels][sort]") {
  const auto processors = static_cast<std::size_t>(
      ferry::cuda::attribute(cudaDevAttrMultiProcessorCount, ferry::cuda::default_device()));
  for (const std::int64_t few : {2, 33, 2048, 2049, 4095, 4096, 4097})
    check_rows(static_cast<std::size_t>(few), 20);
  for (std::size_t items = 1; items <= limits::most_items; items *= 2) {
    const std::size_t most = std::min<std::size_t>(processors, limits::most_blocks) * limits::threads * items;
    if (most < static_cast<std::size_t>(limits::fewest_keys)) continue;
    CHECK(limits::items_for(static_cast<std::int64_t>(most), static_cast<int>(processors)) ==
          static_cast<int>(items));
    for (const std::size_t count : {most - 1, most, most + 1}) check_rows(count, 20);
  }
}

TEST_CASE("keys are sorted by every number of bits", "[kernels][sort]") {
  for (int bits = 1; bits <= 45; ++bits) check_rows(5000 + static_cast<std::size_t>(bits) * 977, bits);
}

TEST_CASE("equal keys keep their order, and one digit may be all there is", "[kernels][sort]") {
  auto random = generator(77);
  for (const std::size_t count : {std::size_t{2050}, std::size_t{70001}, std::size_t{262144}}) {
    check_sorted(count, 20, [](std::size_t) { return 0; });
    check_sorted(count, 20, [](std::size_t) { return 0xfffff; });
    check_sorted(count, 21, [](std::size_t p) { return p / 3; });
    check_sorted(count, 21, [&](std::size_t p) { return count - p; });
    check_sorted(count, 20, [&](std::size_t) { return random() % 8 == 0 ? random() : random() % 3; });
  }
}

}  // namespace ferry_test
