// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"

#include <ferry/bags.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/runtime/detail/report.hpp>

/// The kernels by which a device pools long bags, with a device's tiles, run by this thread.
namespace ferry_test::long_bag_kernels_test {

namespace kernels = ferry::kernels;

enum class tile { single, packed, wide };

/// Pools by both kernels of a list of long bags, their threads in reverse order.
template <class Pool>
void run_with_list(Pool pool, ferry::detail::long_bag_counts& counts, std::int64_t tiles,
                   std::int64_t long_tiles, bool packed, bool has_room) {
  const std::int64_t positions = pool.bags.positions;
  constexpr std::int64_t threads = 256;
  kernels::long_bag_list& list = pool.list;
  list.state = &counts;
  list.least = 1024;
  list.most_bags = has_room ? positions / 1024 : 0;
  list.most_pieces = has_room ? positions / 32 : 0;
  list.tiles = long_tiles;
  std::vector<kernels::long_bag> listed(static_cast<std::size_t>(list.most_bags) + 1, {-1, 0, 0, 0});
  std::vector<kernels::piece_arrivals> arrivals(static_cast<std::size_t>(list.most_bags * long_tiles) + 1,
                                                {77, 77});
  ferry::tensor<float, ferry::pinned_space> sums("sums", static_cast<std::size_t>(list.most_pieces) + 1,
                                                 static_cast<std::size_t>(pool.terms.width));
  put(sums, std::vector<float>(sums.size(), std::numeric_limits<float>::quiet_NaN()));
  list.bags = listed.data();
  list.arrivals = arrivals.data();
  const kernels::pool_long_bags<float, Pool> long_pool{
      pool, sums.data(), ferry::detail::fast_divisor(long_tiles), packed, threads};
  for (std::int64_t i = pool.bags.bags * tiles; i-- > 0;) pool(i);
  for (std::int64_t i = threads; i-- > 0;) long_pool(i);
}

template <class T, class Pooling, class Bounds, class Weight = void>
void check(const std::vector<std::size_t>& offsets, std::size_t width, tile shape, unsigned seed,
           bool overlap = false) {
  CAPTURE(offsets, width, shape, Pooling::name, Bounds::name);
  constexpr std::size_t rows = 90;
  constexpr bool weighs = !std::is_void_v<Weight>;
  auto random = generator(seed);
  auto ids = indices<std::int32_t>(random, offsets.back(), rows);
  if (std::is_same_v<Bounds, ferry::bounds::skip>)
    for (std::size_t p = 0; p < ids.size(); p += 1 + random() % 9) ids[p] = -4;
  const auto values = uneven_values<T>(random, rows * width);
  const auto weights = uneven_values<float>(random, ids.size());
  // An aligned copy, for packets.
  const auto table = make<ferry::pinned_space>("table", rows, width, values);
  const auto named = as_rows(ids);
  auto plain = as_offsets<std::int64_t>(offsets);
  const std::size_t count = offsets.size() - 1;
  const auto w = static_cast<std::int64_t>(width);
  const auto positions = static_cast<std::int64_t>(offsets.back());
  if (overlap) plain[1] = plain[2] + 2000;  // bag 1 is bad, bag 0 overlaps bag 2

  using source = kernels::index_rows<std::int32_t, Bounds>;
  using table_type = kernels::pooled_table<T>;
  using weight = std::conditional_t<weighs, float, void>;
  using pool_kernel =
      kernels::pool_rows<float, Pooling, table_type, source, std::int64_t, weight, float, void>;
  ferry::detail::index_report findings{};
  unsigned int raised = 0;
  const kernels::bag_list<std::int64_t> bags{
      plain.data(), 0, static_cast<std::int64_t>(count), positions, false, true, {&findings, &raised}};
  const std::int64_t elements = shape == tile::single ? 1 : shape == tile::packed ? 4 : 8;
  const std::int64_t tiles = w / elements, piece_tiles = shape == tile::single ? w : w / 4;
  ferry::tensor<float, ferry::pinned_space> out("out", count, width);
  const source named_rows{ids.data(), static_cast<std::int64_t>(rows), {}};
  pool_kernel pool{{table_type::of(table.data(), w), named_rows,
                    [&] {
                      if constexpr (weighs)
                        return weights.data();
                      else
                        return static_cast<const void*>(nullptr);
                    }(),
                    w, positions},
                   bags,
                   out.data(),
                   w,
                   nullptr,
                   0,
                   ferry::detail::fast_divisor(tiles),
                   shape == tile::packed,
                   shape == tile::wide,
                   false,
                   true,
                   nullptr};
  auto expected = pooled<float, float>(values, width, named, offsets, Pooling::name, [&] {
    if constexpr (weighs)
      return weights;
    else
      return no_weights{};
  }());
  if (overlap) {
    const auto first =
        pooled<float, float>(values, width, named, {0, static_cast<std::size_t>(plain[1])}, Pooling::name);
    std::copy_n(first.rows.begin(), width, expected.rows.begin());
    std::fill_n(expected.rows.begin() + w, width, 77.0F);
  }
  put(out, std::vector<float>(count * width, 77.0F));
  for (std::int64_t i = static_cast<std::int64_t>(count) * tiles; i-- > 0;) pool(i);
  CHECK(same_bits(take(out), expected.rows));
  CHECK((findings.bad_bags != 0) == overlap);
  // By a list of long bags, and by one without room, as where bags overlap.
  for (const bool has_room : {true, false}) {
    CAPTURE(has_room);
    put(out, std::vector<float>(count * width, 77.0F));
    run_with_list(pool, findings.long_bags, tiles, piece_tiles, shape != tile::single, has_room);
    CHECK(same_bits(take(out), expected.rows));
    CHECK(findings.long_bags.listed == 0);
    CHECK(findings.long_bags.completed == 0);
  }
}

template <class T, class Pooling, class Bounds, class Weight = void>
void check_shapes(const std::vector<std::size_t>& offsets, unsigned seed) {
  check<T, Pooling, Bounds, Weight>(offsets, 3, tile::single, seed);
  check<T, Pooling, Bounds, Weight>(offsets, 8, tile::packed, seed + 1);
  if constexpr (sizeof(T) == 2) check<T, Pooling, Bounds, Weight>(offsets, 16, tile::wide, seed + 2);
}

TEST_CASE("a device's kernels pool long bags", "[long_bags]") {
  using namespace ferry;
  const std::vector<std::vector<std::size_t>> batches = {{0, 1024},
                                                         {0, 1023, 2046},
                                                         {31, 1055, 1056, 2200},
                                                         {5, 5, 1100, 1100, 9291, 17483, 17484},
                                                         {0, 8193, 8193 + 8447, 8193 + 8447 + 8448},
                                                         {1, 40'001}};
  unsigned seed = 41;
  for (const auto& offsets : batches) {
    check_shapes<float, pooling::sum, bounds::check>(offsets, seed += 5);
    check_shapes<float, pooling::mean, bounds::skip>(offsets, seed += 5);
    check_shapes<half_t, pooling::mean, bounds::clamp>(offsets, seed += 5);
    check_shapes<half_t, pooling::sum, bounds::skip, float>(offsets, seed += 5);
  }
  auto random = generator(seed);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::size_t> offsets{random() % 70};
    for (std::size_t bag = 1 + random() % 9; bag-- > 0;)
      offsets.push_back(offsets.back() + (random() % 3 == 0 ? random() % 2000 : 1000 + random() % 90));
    check<float, pooling::sum, bounds::skip>(offsets, 4, tile::packed, seed += 5);
  }
}

TEST_CASE("threads sum the longest runs of pieces, across bags", "[long_bags]") {
  using namespace ferry;
  auto random = generator(611);
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::size_t> offsets{random() % 70};
    for (int bag = 0; bag < 12; ++bag)
      offsets.push_back(offsets.back() + (random() % 3 == 0 ? random() % 1500 : 1024 + random() % 1100));
    const auto seed = static_cast<unsigned>(612 + 5 * turn);
    check<float, pooling::sum, bounds::check>(offsets, 67, tile::single, seed);
    check<float, pooling::mean, bounds::skip>(offsets, 164, tile::packed, seed + 1);
  }
}

TEST_CASE("a device's kernels pool long bags that overlap next to bad offsets", "[long_bags]") {
  using namespace ferry;
  check<float, pooling::sum, bounds::check>({0, 1500, 3000, 6000, 6500}, 4, tile::packed, 7, true);
  check<float, pooling::mean, bounds::skip>({0, 1500, 3000, 6000, 6500}, 3, tile::single, 8, true);
}

TEST_CASE("a row has no more pieces than there is room for", "[long_bags]") {
  std::int64_t greatest = 0;
  for (std::int64_t values = 64; values < 100'000; ++values)
    greatest = std::max(greatest, kernels::sum_pieces(values).count);
  CHECK(greatest == kernels::sum_pieces::greatest_count);
}

TEST_CASE("long bags are listed if bags are few, or the batch is large", "[long_bags]") {
  using ferry::detail::long_bag_length;
  const std::int32_t offset = 0;
  const auto least = [&](std::int64_t bags, std::int64_t positions, std::int64_t tiles = 32) {
    const kernels::bag_list<std::int32_t> list{&offset, 0, bags, positions, false, true, {}};
    constexpr std::int64_t threads = 132 * 1280;
    return long_bag_length(list, tiles, threads, 24 * threads / tiles);
  };
  CHECK(least(1, 1'000'000) == 1024);
  CHECK(least(8, 8 * 131'072) == 1024);
  CHECK(least(132, 132 * 7943) == 1024);
  CHECK(least(65'536, 131'072) == 1024);
  CHECK(least(65'536, 1'048'576) == 4096);
  CHECK(least(8192, 8192 * 2000) == 64'000);
  CHECK(least(65'536, 655'360, 1) == 0);
  CHECK(least(2048, 16'384) == 0);
  CHECK(least(100, 10'000) == 0);
  CHECK(least(1, 1023) == 0);
  CHECK(least(0, 0) == 0);
  const auto fixed = [](std::int64_t hotness, std::int64_t bags) {
    const kernels::bag_list<std::int32_t> list{nullptr, hotness, bags, bags * hotness, false, false, {}};
    return long_bag_length(list, 32, 132 * 1280, 1000);
  };
  CHECK(fixed(1023, 100) == 0);
  CHECK(fixed(1024, 100) == 1024);
  CHECK(fixed(10, 65'536) == 0);
  CHECK(long_bag_length(kernels::bag_list<std::int32_t>{&offset, 0, 1, 100'000, false, true, {}}, 1, 0, 1) ==
        0);
}

}  // namespace ferry_test::long_bag_kernels_test
