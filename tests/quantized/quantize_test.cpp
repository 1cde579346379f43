// SPDX-License-Identifier: Apache-2.0
#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

namespace ferry_test::quantize_test {

template <class V, class FromSpace, class Space, class Path>
void quantize_by(Path path, std::mt19937_64& random, std::size_t rows, std::size_t width) {
  CAPTURE(FromSpace::name, Space::name, path.name, rows, width);
  const auto content = uneven_rows<V>(random, rows, width);
  const auto source = make<FromSpace>("weights", rows, width, content);
  const auto expected = records_of(content, width);
  const exec_space exec;
  ferry::rowwise_int8_tensor<Space> table("codes", rows, width);
  put(table.records(), std::vector<std::byte>(expected.size(), std::byte{0xEE}));
  ferry::quantize(exec, source, table, path).wait();
  CHECK(take(table.records()) == expected);

  ferry::tensor<V, FromSpace> back("back", rows, width);
  ferry::dequantize(exec, table, back, path).wait();
  const auto got = take(back);
  CHECK(same_values(got, as<V>(values_of(expected, width))));
}

template <class FromSpace, class Space>
void quantize_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  for_covering_paths<FromSpace, Space, work::copies>(
      [&](auto path) { quantize_by<float, FromSpace, Space>(path, random, rows, width); });
}

using quantize_points = zipped<decltype(spaces), decltype(spaces), 0, 1, 2>;
TEMPLATE_LIST_TEST_CASE("quantize and dequantize between spaces", "[int8][once]", quantize_points) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  auto random = generator(91);
  for (const std::size_t width : {1u, 3u, 16u, 33u, 128u}) {
    quantize_everywhere<from, to>(random, 1, width);
    quantize_everywhere<from, to>(random, 100, width);
  }
  // Two chunks. A host has none.
  quantize_everywhere<from, to>(random, ferry::HostExecutionSpace<exec_space> ? 0 : 70000, 128);
}

TEMPLATE_TEST_CASE("quantize of every element type and width", "[int8]", float, double, ferry::half_t,
                   ferry::bhalf_t) {
  auto random = generator(92);
  const auto run = [&](std::size_t rows, std::size_t width) {
    quantize_by<TestType, ferry::device_space, ferry::device_space>(ferry::path::direct{}, random, rows,
                                                                    width);
  };
  for (std::size_t width = 1; width <= 40; ++width) run(67, width);
  for (const std::size_t width : {64u, 127u, 129u, 1000u, 40000u}) run(5, width);
}

TEST_CASE("rows at the ends of float's range, and rows without a range", "[int8]") {
  constexpr float largest = std::numeric_limits<float>::max();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float least = std::numeric_limits<float>::denorm_min();
  constexpr float normal = std::numeric_limits<float>::min();
  const std::size_t width = 5;
  const std::vector<float> content{
      largest, -largest,  0.0f,        1.0f,        largest / 3,  // the whole range
      least,   0.0f,      3 * least,   0.0f,        least,        // below a step
      0.0f,    least,     357 * least, 100 * least, 254 * least, normal, -normal, 0.0f, least, normal / 2,  //
      -0.0f,   0.0f,      -0.0f,       0.0f,        0.0f,     // zeros
      -0.0f,   -0.0f,     -0.0f,       -0.0f,       -0.0f,    //
      largest, largest,   largest,     largest,     largest,  // constant
      1.0f,    infinite,  2.0f,        3.0f,        4.0f,     // no range
      1.0f,    -infinite, 2.0f,        3.0f,        4.0f,     //
      1.0f,    2.0f,      3.0f,        4.0f,        nan,      //
      nan,     infinite,  -infinite,   nan,         nan};
  const std::size_t rows = content.size() / width;
  const exec_space exec;
  const auto source = make<ferry::device_space>("weights", rows, width, content);
  ferry::rowwise_int8_tensor<ferry::device_space> table("codes", rows, width);
  ferry::quantize(exec, source, table).wait();
  const auto records = take(table.records());
  CHECK(records == records_of(content, width));
  ferry::tensor<float, ferry::device_space> back("back", rows, width);
  ferry::dequantize(exec, table, back).wait();
  const auto got = take(back);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, content[i], got[i]);
    const auto row = row_at(content, width, i / width);
    const bool finite = std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    CHECK(std::isnan(got[i]) == !finite);
    if (!finite) continue;
    const double range = static_cast<double>(*std::max_element(row.begin(), row.end())) -
                         static_cast<double>(*std::min_element(row.begin(), row.end()));
    CHECK(std::abs(static_cast<double>(got[i]) - static_cast<double>(content[i])) <=
          range / 255.0 * 0.51 + static_cast<double>(least));
  }
  // Doubles that no float holds have no range either.
  const auto huge = make<ferry::device_space>("huge", 1, 2, std::vector<double>{1.0, 1e300});
  ferry::rowwise_int8_tensor<ferry::device_space> single("one", 1, 2);
  ferry::tensor<double, ferry::device_space> read("read", 1, 2);
  ferry::quantize(exec, huge, single).wait();
  ferry::dequantize(exec, single, read).wait();
  CHECK((std::isnan(take(read)[0]) && std::isnan(take(read)[1])));
}

TEST_CASE("quantize takes rows that are apart and tables of any rank", "[int8]") {
  auto random = generator(94);
  const exec_space exec;
  const std::size_t rows = 31;
  const auto content = uneven_rows<float>(random, rows, 24);
  ferry::tensor<float, ferry::device_space> images("images", rows, 2, 3, 4);
  put(images, content);
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("codes", rows, 24);
  ferry::quantize(exec, images, table).wait();
  CHECK(take(table.records()) == records_of(content, 24));

  Kokkos::View<float**, Kokkos::LayoutRight, exec_space::memory_space> wide("wide", rows, 24);
  const auto host = Kokkos::create_mirror_view(wide);
  std::vector<float> part;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < 24; ++c) {
      host(r, c) = content[r * 24 + c];
      if (c >= 3 && c < 20) part.push_back(host(r, c));
    }
  Kokkos::deep_copy(wide, host);
  Kokkos::View<float**, Kokkos::LayoutRight, exec_space::memory_space> target("target", rows, 24);
  // By way of the host: not every Kokkos fills a view on a device with CUDA 13.
  const auto poison = Kokkos::create_mirror_view(target);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < 24; ++c) poison(r, c) = -1.0f;
  Kokkos::deep_copy(target, poison);
  const auto columns = Kokkos::make_pair(3, 20);
  ferry::rowwise_int8_tensor<ferry::pinned_space> narrow("codes", rows, 17);
  const auto source = Kokkos::subview(wide, Kokkos::ALL, columns);
  ferry::quantize(exec, source, narrow).wait();
  CHECK(take(narrow.records()) == records_of(part, 17));
  ferry::dequantize(exec, narrow, Kokkos::subview(target, Kokkos::ALL, columns)).wait();
  const auto copy = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, target);
  const auto expected = as<float>(values_of(records_of(part, 17), 17));
  std::vector<std::string> wrong;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < 24; ++c) {
      const float should = c >= 3 && c < 20 ? expected[r * 17 + c - 3] : -1.0f;
      if (copy(r, c) != should)
        wrong.push_back(std::to_string(r) + ", " + std::to_string(c) + ": " + std::to_string(copy(r, c)) +
                        " instead of " + std::to_string(should));
    }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("8-bit tables: extents and what is refused", "[int8][errors]") {
  const exec_space exec;
  ferry::rowwise_int8_tensor<ferry::device_space> table("codes", 10, 33);
  CHECK(table.rows() == 10);
  CHECK(table.width() == 33);
  CHECK(table.extent(0) == 10);
  CHECK(table.extent(1) == 33);
  CHECK(table.extent(2) == 1);
  CHECK(table.rank() == 2);
  CHECK(table.size() == 330);
  CHECK(table.data() == table.records().data());
  CHECK(table.row_bytes() == 48);
  CHECK(table.label() == "codes");
  CHECK(ferry::rowwise_int8_tensor<ferry::device_space>::record_bytes(8) == 16);
  CHECK(ferry::rowwise_int8_tensor<ferry::device_space>::record_bytes(9) == 32);
  CHECK(ferry::rowwise_int8_tensor<ferry::device_space>::record_bytes(128) == 144);
  CHECK_THROWS_AS(ferry::rowwise_int8_tensor<ferry::device_space>("codes", -1, 3), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::rowwise_int8_tensor<ferry::device_space>("codes", 1, -3), ferry::invalid_argument);
  ferry::tensor<float, ferry::device_space> second("other", 10, 32);
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  CHECK_THROWS_MATCHES(
      ferry::quantize(exec, second, table), ferry::invalid_argument,
      says("the rows of 'other' [10 x 32] in device_space and 'codes' [10 x 33] in device_space differ"));
  CHECK_THROWS_MATCHES(
      ferry::dequantize(exec, table, second), ferry::invalid_argument,
      says("the rows of 'codes' [10 x 33] in device_space and 'other' [10 x 32] in device_space differ"));
}

}  // namespace ferry_test::quantize_test
