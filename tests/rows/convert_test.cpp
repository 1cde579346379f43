// SPDX-License-Identifier: Apache-2.0
#include "conversion.hpp"
#include "rows/conversion.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

namespace ferry_test::convert_test {

// The device's tiles of either kind, on whatever execution space there is: a host backend never picks them
// itself.

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

/// Elements for arrays of rows x width at any offset, and what each is converted to.
template <class From, class To>
struct conversion {
  std::size_t rows, width;
  std::vector<From> content;
  std::vector<To> converted, poison;

  conversion(std::mt19937_64& random, std::size_t row_count, std::size_t columns)
      : rows(row_count),
        width(columns),
        content(awkward_values<To, From>(random, rows * width + 8)),
        poison(values<To>(random, rows * width + 8)) {
    converted.reserve(content.size());
    for (const From& value : content) converted.push_back(converted_once<To>(value));
  }
};

template <class From, class To, class FromSpace, class ToSpace, class Path>
void convert_copy(const conversion<From, To>& arrays, Path path, const std::size_t (&offset)[2]) {
  CAPTURE(FromSpace::name, ToSpace::name, path.name, arrays.rows, arrays.width, offset[0], offset[1]);
  auto source = make<FromSpace>("from", arrays.content);
  const exec_space exec;
  auto sink = make<ToSpace>("to", arrays.poison);
  ferry::copy(exec, view_at(source, offset[0], arrays.rows, arrays.width),
              view_at(sink, offset[1], arrays.rows, arrays.width), path)
      .wait();
  auto expected = arrays.poison;
  const auto first = arrays.converted.begin() + static_cast<std::ptrdiff_t>(offset[0]);
  std::copy(first, first + static_cast<std::ptrdiff_t>(arrays.rows * arrays.width),
            expected.begin() + static_cast<std::ptrdiff_t>(offset[1]));
  CHECK(same_values(take(sink), expected));
}

template <class From, class To, class FromSpace, class ToSpace>
void convert_copies(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  const conversion<From, To> arrays(random, rows, width);
  for (const auto& offset : conversion_offsets)
    for_each_path<FromSpace, ToSpace, work::copies>(
        [&](auto path) { convert_copy<From, To, FromSpace, ToSpace>(arrays, path, offset); });
}

using copy_convert_points = product<decltype(elements), decltype(elements)>;
TEMPLATE_LIST_TEST_CASE("copy converts arrays of every size and alignment", "[copy][convert]",
                        copy_convert_points) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  using device = ferry::device_space;
  auto random = generator(72);
  for (const std::size_t width : conversion_widths)
    for (const std::size_t rows : {1u, 67u}) {
      const conversion<from, to> arrays(random, rows, width);
      for (const auto& offset : conversion_offsets)
        convert_copy<from, to, device, device>(arrays, ferry::path::direct{}, offset);
    }
}

TEST_CASE("copy converts through several slots, whatever the alignment", "[copy][convert][once]") {
  auto random = generator(73);
  constexpr std::size_t parts = ferry::HostExecutionSpace<exec_space> ? 8 : 1;  // a host has no ring
  convert_copies<float, ferry::bhalf_t, ferry::pageable_space, ferry::device_space>(random, 9001 / parts,
                                                                                    131);
  convert_copies<ferry::half_t, double, ferry::device_space, ferry::pageable_space>(random, 5003 / parts,
                                                                                    129);
  convert_copies<double, float, ferry::pinned_space, ferry::mapped_space>(random, 1009, 33);
}

}  // namespace ferry_test::convert_test
