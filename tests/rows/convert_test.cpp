// SPDX-License-Identifier: Apache-2.0
#include "rows/conversion.hpp"
#include "support/matrix.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <tuple>

/// The device's tiles of either kind, on whatever execution space there is: a host backend never picks them
/// itself.
namespace ferry_test::convert_test {

using pairs =
    std::tuple<std::tuple<float, ferry::half_t>, std::tuple<ferry::bhalf_t, float>, std::tuple<double, float>,
               std::tuple<std::int32_t, double>, std::tuple<ferry::half_t, std::int64_t>>;

TEMPLATE_LIST_TEST_CASE("convert_rows in packets and element by element", "[kernels][convert]", pairs) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  using kernel = ferry::kernels::convert_rows<to, from, ferry::kernels::listed_rows>;
  auto random = generator(81);
  const std::size_t rows = 19, width = 24;
  const std::vector<std::int64_t> ids{3, -1, 18, 0, 3, 7};
  const auto content = awkward_values<to, from>(random, rows * width);
  const auto poison = values<to>(random, ids.size() * width);
  const auto table = make<ferry::device_space>("weights", content);
  const auto listed = make<ferry::device_space>("rows", ids);
  auto expected = poison;
  for (std::size_t p = 0; p < ids.size(); ++p)
    for (std::size_t c = 0; ids[p] >= 0 && c < width; ++c)
      expected[p * width + c] = converted_once<to>(content[static_cast<std::size_t>(ids[p]) * width + c]);
  const exec_space exec;
  for (const bool packed : {false, true}) {
    CAPTURE(packed);
    auto out = make<ferry::device_space>("batch", poison);
    const std::int64_t tiles = packed ? width / ferry::kernels::packed_tile_of<to, from>::elements
                                      : ferry::kernels::tiles_of<ferry::kernels::masked_tile>(width);
    ferry::detail::launch(
        exec, "ferry::test", static_cast<std::int64_t>(ids.size()) * tiles,
        kernel{table.data(), width, out.data(), width, width, ferry::detail::fast_divisor(tiles), packed,
               ferry::kernels::listed_rows{listed.data()}});
    CHECK(same_values(take(out), expected));
  }
}

TEMPLATE_LIST_TEST_CASE("convert_elements in whole and in shorter tiles", "[kernels][convert]", pairs) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  auto random = generator(82);
  const exec_space exec;
  const auto run = [&]<class Tile>(Tile, std::size_t count) {
    CAPTURE(Tile::elements, Tile::packed, count);
    const auto content = awkward_values<to, from>(random, count);
    const auto poison = values<to>(random, count + 4);
    const auto source = make<ferry::device_space>("from", content);
    auto sink = make<ferry::device_space>("to", poison);
    using kernel = ferry::kernels::convert_elements<to, from, Tile>;
    const auto tiles = (static_cast<std::int64_t>(count) + kernel::elements - 1) / kernel::elements;
    ferry::detail::launch(exec, "ferry::test", tiles,
                          kernel{sink.data(), source.data(), static_cast<std::int64_t>(count)});
    auto expected = poison;
    for (std::size_t i = 0; i < count; ++i) expected[i] = converted_once<to>(content[i]);
    CHECK(same_values(take(sink), expected));
  };
  for (const std::size_t count : {1u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u}) {
    run(ferry::kernels::packed_tile{}, count);
    run(ferry::kernels::host_tile{}, count);
    run(ferry::kernels::single_tile{}, count);
  }
}

}  // namespace ferry_test::convert_test
