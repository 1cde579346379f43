// SPDX-License-Identifier: Apache-2.0
#include "conversion.hpp"
#include "support/matrix.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::gather_convert_test {

// All pairs of types are converted by copy, in the tiles that gather has as well; here every type is on both sides of
// rows that only move and of two conversions.
using gather_convert_points = zipped<decltype(elements), decltype(elements), 0, 1, 3>;
TEMPLATE_LIST_TEST_CASE("gather converts rows of every width and alignment", "[gather][convert]",
                        gather_convert_points) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  auto random = generator(71);
  const std::size_t rows = 53, n = 41;
  const exec_space exec;
  for (const std::size_t width : conversion_widths)
    for (const auto& offset : conversion_offsets) {
      CAPTURE(width, offset[0], offset[1]);
      const auto content = awkward_values<to, from>(random, rows * width + 8);
      const auto poison = values<to>(random, n * width + 8);
      auto ids = indices<std::int32_t>(random, n, rows);
      ids[5] = -1;
      ids[n - 1] = static_cast<int>(rows);
      auto table = make<ferry::device_space>("weights", content);
      auto out = make<ferry::device_space>("batch", poison);
      ferry::gather(exec, view_at(table, offset[0], rows, width), ids, view_at(out, offset[1], n, width),
                    ferry::bounds::skip{}, ferry::path::direct{})
          .wait();
      auto expected = poison;
      for (std::size_t p = 0; p < n; ++p) {
        const auto row = row_of(ids[p], rows, on_bad::leave);
        for (std::size_t c = 0; row >= 0 && c < width; ++c)
          expected[offset[1] + p * width + c] =
              converted_once<to>(content[offset[0] + static_cast<std::size_t>(row) * width + c]);
      }
      CHECK(same_values(take(out), expected));
    }
}

}  // namespace ferry_test::gather_convert_test
