// SPDX-License-Identifier: Apache-2.0
#include "conversion.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::copy_convert_test {
namespace {

template <class From, class To, class FromSpace, class ToSpace, class Path>
void convert_copy(std::mt19937_64& random, Path path, std::size_t rows, std::size_t width,
                  const std::size_t (&offset)[2]) {
  CAPTURE(FromSpace::name, ToSpace::name, path.name, rows, width, offset[0], offset[1]);
  const auto content = awkward_values<To, From>(random, rows * width + 8);
  const auto poison = values<To>(random, rows * width + 8);
  auto source = make<FromSpace>("from", content);
  const exec_space exec;
  auto sink = make<ToSpace>("to", poison);
  ferry::copy(exec, view_at(source, offset[0], rows, width), view_at(sink, offset[1], rows, width), path)
      .wait();
  auto expected = poison;
  for (std::size_t i = 0; i < rows * width; ++i)
    expected[offset[1] + i] = converted_once<To>(content[offset[0] + i]);
  CHECK(same_values(take(sink), expected));
}

template <class From, class To, class FromSpace, class ToSpace>
void convert_copies(std::mt19937_64& random, std::size_t rows, std::size_t width,
                    const std::size_t (&offset)[2]) {
  for_each_path<FromSpace, ToSpace, work::copies>(
      [&](auto path) { convert_copy<From, To, FromSpace, ToSpace>(random, path, rows, width, offset); });
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
    for (const auto& offset : conversion_offsets)
      for (const std::size_t rows : {1u, 67u})
        convert_copy<from, to, device, device>(random, ferry::path::direct{}, rows, width, offset);
}

TEST_CASE("copy converts through the ring in several slots, whatever the alignment",
          "[copy][convert][once]") {
  auto random = generator(73);
  for (const auto& offset : conversion_offsets) {
    convert_copies<float, ferry::bhalf_t, ferry::pageable_space, ferry::device_space>(random, 9001, 131,
                                                                                      offset);
    convert_copies<ferry::half_t, double, ferry::device_space, ferry::pageable_space>(random, 5003, 129,
                                                                                      offset);
    convert_copies<double, float, ferry::pinned_space, ferry::mapped_space>(random, 1009, 33, offset);
  }
}

}  // namespace ferry_test::copy_convert_test
