// SPDX-License-Identifier: Apache-2.0
#include "conversion.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace ferry_test::copy_convert_test {
namespace {

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

}  // namespace

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

TEST_CASE("copy converts through the ring in several slots, whatever the alignment",
          "[copy][convert][once]") {
  auto random = generator(73);
  convert_copies<float, ferry::bhalf_t, ferry::pageable_space, ferry::device_space>(random, 9001, 131);
  convert_copies<ferry::half_t, double, ferry::device_space, ferry::pageable_space>(random, 5003, 129);
  convert_copies<double, float, ferry::pinned_space, ferry::mapped_space>(random, 1009, 33);
}

}  // namespace ferry_test::copy_convert_test
