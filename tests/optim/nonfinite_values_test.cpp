// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/optim/detail/step_inputs.hpp>

/// The kernel that looks for values that are infinite or not a number, on arrays of any alignment. Gaps between rows hold such
/// values, which are nobody's.
namespace ferry_test::nonfinite_values_test {

using ferry::detail::array_ref;
using ferry::detail::index_report;
using ferry::detail::nonfinite_value;
using ferry::detail::report_writer;

/// Rows with gaps, and the report that plain loops find.
template <class T>
struct gapped_rows {
  std::size_t rows, width, stride;
  std::vector<T> content;
  index_report expected{};

  gapped_rows(std::mt19937_64& random, std::size_t row_count, std::size_t columns, std::size_t step,
              std::size_t bad)
      : rows(row_count),
        width(columns),
        stride(step),
        content(rows * stride + 16, element<T>(std::numeric_limits<double>::quiet_NaN())) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> values;
    for (std::size_t i = 0; i < rows * width; ++i) values.push_back(static_cast<double>(random() % 9) - 4.0);
    if (values.empty()) bad = 0;
    for (std::size_t b = 0; b < bad; ++b)
      values[random() % values.size()] = random() % 3 == 0   ? std::numeric_limits<double>::quiet_NaN()
                                         : random() % 2 == 0 ? infinity
                                                             : -infinity;
    for (std::size_t i = values.size(); i-- > 0;) {
      content[i / width * stride + i % width] = element<T>(values[i]);
      if (values[i] - values[i] == 0.0) continue;
      const std::uint64_t value_kind = values[i] != values[i] ? nonfinite_value::not_a_number
                                       : values[i] < 0.0      ? nonfinite_value::negative_infinity
                                                              : nonfinite_value::infinity;
      ++expected.nonfinite;
      expected.first_value = i * nonfinite_value::kinds + value_kind;
    }
  }
  void check(const index_report& findings) const {
    CAPTURE(sizeof(T), rows, width, stride);
    CHECK(findings.nonfinite == expected.nonfinite);
    CHECK(findings.first_value == expected.first_value);
  }
};

template <class T>
void check_launches(std::mt19937_64& random) {
  const exec_space exec;
  for (const std::size_t width : {0, 1, 3, 4, 8, 16, 35, 64})
    for (const std::size_t rows : {0, 1, 2, 7, 130})
      for (const std::size_t gap : {0, 1, 4, 8}) {
        const std::size_t first = random() % 2 == 0 ? 0 : random() % 9;
        const gapped_rows<T> source(random, rows, width, width + gap, random() % 4);
        std::vector<T> moved(source.content.size() + first, source.content.back());
        std::copy(source.content.begin(), source.content.end(),
                  moved.begin() + static_cast<std::ptrdiff_t>(first));
        const auto memory = make<ferry::device_space>("gradients", moved);
        auto values = ferry::detail::dense_rows<const T, ferry::device_space>(
            memory.data() + first, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width),
            "gradients");
        values.strides = {static_cast<std::int64_t>(source.stride), 1};
        ferry::detail::launch_context<exec_space> call(exec, "test");
        const report_writer writer = call.report();
        ferry::detail::launch_find_nonfinite(exec, "ferry::test::find_nonfinite", values, writer);
        exec.fence("ferry::test");
        const index_report findings = ferry::detail::read_report<exec_space>(writer);
        call.finish().drop();
        CAPTURE(first);
        source.check(findings);
      }
}

TEST_CASE("values that are no numbers are found at any alignment, and not in gaps", "[optim][nonfinite]") {
  auto random = generator(932);
  check_launches<float>(random);
  check_launches<double>(random);
  check_launches<ferry::half_t>(random);
  check_launches<ferry::bhalf_t>(random);
}

}  // namespace ferry_test::nonfinite_values_test
