// SPDX-License-Identifier: Apache-2.0
#include "../../backends/cuda/detail/sort_and_place.hpp"
#include "../../src/plan/sort_kernels.hpp"
#include "support/test.hpp"

/// The plan of one launch, on both sides of every size at which its sort does something else.
namespace ferry_test::grid_sort_cuda_test {

/// The keys of a sort, as they are.
struct ready_keys {
  const std::uint64_t* keys;

  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t i, bool) const { return keys[i]; }
};

using sort = ferry::cuda::sort_functions;
using limits = ferry::cuda::grid_sort;

std::int64_t multiprocessors() { return ferry::cuda::multiprocessors_of(ferry::cuda::default_device()); }

/// True if one launch sorts this number of keys.
bool fits(std::int64_t count) {
  return sort::sorts_without_scratch(count) || limits::items_for(count, multiprocessors()) != 0;
}

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
  const auto poisoned = [&](const char* name, std::size_t size) {
    return make<ferry::device_space>(name, size, 1, std::vector<std::int64_t>(size, -77));
  };
  const auto unsorted = make<ferry::device_space>("keys", count, 1, keys);
  auto first = make<ferry::device_space>("one", count + 1, 1, std::vector<std::uint64_t>(count + 1, 3));
  auto second = make<ferry::device_space>("other", count + 1, 1, std::vector<std::uint64_t>(count + 1, 5));
  auto room = make<ferry::device_space>("room", bytes, 1, std::vector<std::uint8_t>(bytes, 0xa5));
  auto sorted_rows =
      make<ferry::device_space>("rows", count, 1, std::vector<std::uint64_t>(count, ~std::uint64_t{0} / 3));
  auto order = poisoned("order", count), inverse = poisoned("inverse", count);
  auto unique_rows = poisoned("unique_rows", count), segment_begin = poisoned("segments", count + 1);
  auto counts = poisoned("counts", 2);
  auto long_found = make<ferry::device_space>("long", 1, 1, std::vector<std::int64_t>{0});
  auto arrived = make<ferry::device_space>("arrived", 1, 1, std::vector<unsigned int>{0});
  const ferry::kernels::write_segments segments{{unsorted.data(), n, rows, position_bits},
                                                sorted_rows.data(),
                                                order.data(),
                                                unique_rows.data(),
                                                segment_begin.data(),
                                                reinterpret_cast<std::int64_t*>(second.data()),
                                                inverse.data(),
                                                counts.data(),
                                                counts.data() + 1,
                                                long_found.data()};
  const bool ended =
      sort::sort_and_place(exec, ready_keys{unsorted.data()}, segments, first.data(), second.data(),
                           arrived.data(), n, position_bits, position_bits + key_bits, room.data(), bytes);
  exec.fence("ferry_test::sort");
  CHECK(take(arrived) == std::vector<unsigned int>{0});
  REQUIRE(ended == fits(n));
  if (!ended) {
    CHECK(take(order) == std::vector<std::int64_t>(count, -77));
    std::uint64_t* sorted = first.data();
    put(first, [&] {
      auto padded = keys;
      padded.push_back(0);
      return padded;
    }());
    sort::sort_keys(exec, sorted, second.data(), n, position_bits, position_bits + key_bits, room.data(),
                    bytes);
    exec.fence("ferry_test::sort");
    auto result = sorted == second.data() ? take(second) : take(first);
    result.pop_back();
    std::sort(keys.begin(), keys.end());
    CHECK(result == keys);
    return;
  }
  std::sort(keys.begin(), keys.end());
  const auto places = take(order);
  auto rows_read = take(sorted_rows);
  for (std::size_t k = 0; k < count; ++k)
    rows_read[k] = rows_read[k] << position_bits | static_cast<std::uint64_t>(places[k]);
  CHECK(rows_read == keys);

  // Segments of the sorted keys, by a plain loop; a row of `rows` is none.
  std::vector<std::int64_t> uniques, begins, segment_of(count, -1);
  std::int64_t runs = 0, valid = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const auto row_here = keys[k] >> position_bits;
    if (row_here >= rows) break;
    if (uniques.empty() || static_cast<std::uint64_t>(uniques.back()) != row_here) {
      if (uniques.empty() || static_cast<std::uint64_t>(uniques.back()) + 1 != row_here) ++runs;
      uniques.push_back(static_cast<std::int64_t>(row_here));
      begins.push_back(valid);
    }
    segment_of[keys[k] & ((std::uint64_t{1} << position_bits) - 1)] =
        static_cast<std::int64_t>(uniques.size()) - 1;
    ++valid;
  }
  begins.push_back(valid);
  CHECK(take(counts) == std::vector<std::int64_t>{static_cast<std::int64_t>(uniques.size()), runs});
  CHECK(take(inverse) == segment_of);
  auto made_rows = take(unique_rows), made_begins = take(segment_begin);
  made_rows.resize(uniques.size());
  made_begins.resize(begins.size());
  CHECK(made_rows == uniques);
  CHECK(made_begins == begins);
  std::int64_t longest = 0;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) longest = std::max(longest, begins[s + 1] - begins[s]);
  CHECK(take(long_found) == std::vector<std::int64_t>{longest >= 64 ? 1 : 0});
}

void check_rows(std::size_t count, int key_bits) {
  auto random = generator(static_cast<unsigned int>(1000 + count % 977));
  check_sorted(count, key_bits, [&](std::size_t) { return random(); });
}

TEST_CASE("keys are sorted on both sides of what a thread and the device hold", "[kernels][sort]") {
  const auto processors = static_cast<std::size_t>(multiprocessors());
  constexpr auto block = static_cast<std::size_t>(limits::threads);
  for (const std::size_t few : {1, 2, 31, 32, 33, 63, 64, 65}) check_rows(few, 20);
  const auto compared = static_cast<std::size_t>(ferry::cuda::tuning_numbers::keys_compared);
  for (const std::size_t count : {compared - 1, compared, compared + 1}) check_rows(count, 20);
  for (std::size_t items = 1; items <= limits::most_items; items *= 2) {
    CHECK(limits::items_for(static_cast<std::int64_t>(block * items), 1) == static_cast<int>(items));
    for (const std::size_t count : {block * items - 1, block * items, block * items + 1})
      check_rows(count, 20);
    const std::size_t most = std::min<std::size_t>(processors, limits::most_blocks) * block * items;
    CHECK(limits::items_for(static_cast<std::int64_t>(most), static_cast<std::int64_t>(processors)) ==
          static_cast<int>(items));
    for (const std::size_t count : {most - 1, most, most + 1}) check_rows(count, 20);
  }
}

TEST_CASE("keys are sorted by every number of bits", "[kernels][sort]") {
  for (int bits = 1; bits <= 45; ++bits) {
    check_rows(5000 + static_cast<std::size_t>(bits) * 977, bits);
    check_rows(70 + static_cast<std::size_t>(bits) * 77, bits);
    check_rows(2100 + static_cast<std::size_t>(bits) * 9, bits);
    check_rows(16500 + static_cast<std::size_t>(bits) * 9, bits);
  }
  check_rows(1024, 54);
  check_rows(4096, 52);
}

TEST_CASE("equal keys keep their order, and one digit may be all there is", "[kernels][sort]") {
  auto random = generator(77);
  for (const std::size_t count : {std::size_t{999}, std::size_t{2048}, std::size_t{4096}, std::size_t{16000},
                                  std::size_t{70001}, std::size_t{262144}}) {
    check_sorted(count, 20, [](std::size_t) { return 0; });
    check_sorted(count, 20, [](std::size_t) { return 0xfffff; });
    check_sorted(count, 21, [](std::size_t p) { return p / 3; });
    check_sorted(count, 21, [&](std::size_t p) { return count - p; });
    check_sorted(count, 20, [&](std::size_t) { return random() % 8 == 0 ? random() : random() % 3; });
  }
}

}  // namespace ferry_test::grid_sort_cuda_test
