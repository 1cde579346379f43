// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

/// Loads into arrays that exist.
namespace ferry_test::load_into_test {

using ferry::io::convert_dtype;

constexpr std::size_t rows = 61, width = 13;

TEMPLATE_TEST_CASE("a file fills an array of any memory space", "[io][npy]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const temporary_folder folder;
  const std::string npy = folder.path() + "/a.npy", tensors = folder.path() + "/a.safetensors";
  auto random = generator(541);
  const auto expected = values<float>(random, rows * width);
  const auto source = make<ferry::pageable_space>("from", rows, width, expected);
  ferry::io::save_npy(npy, source);
  ferry::io::save_safetensors(tensors, {{"w", source}});
  const auto file = ferry::io::open_safetensors(tensors);
  const exec_space exec;
  const std::vector<float> poison(rows * width, -77.0f);
  ferry::tensor<float, TestType> table("table", rows, width);
  const auto check = [&](const auto& load) {
    put(table, poison);
    load();
    CHECK(same_bits(take(table), expected));
  };
  check([&] { ferry::io::load_npy(npy, table); });
  check([&] { ferry::io::load_npy(exec, npy, table); });
  check([&] { ferry::io::load_npy(npy, table.view()); });
  check([&] { file.load("w", table); });
  check([&] { file.load(exec, "w", table); });
  check([&] { file.load("w", 0, rows, table, convert_dtype{}); });

  // Slices, on both sides.
  put(table, poison);
  file.load("w", 10, 25, table.rows_between(30, 45));
  const auto content = take(table);
  for (std::size_t i = 0; i < rows * width; ++i) {
    const std::size_t row = i / width;
    const float value = row >= 30 && row < 45 ? expected[i - 20 * width] : -77.0f;
    REQUIRE(content[i] == value);
  }

  // Conversion where it is asked for, to the nearest number as ferry::copy does.
  ferry::tensor<ferry::half_t, TestType> narrow("narrow", rows, width), copied("copied", rows, width);
  ferry::copy(exec, source, copied).wait();
  ferry::io::load_npy(npy, narrow, convert_dtype{});
  CHECK(same_bits(take(narrow), take(copied)));
  put(narrow, std::vector<ferry::half_t>(rows * width));
  file.load(exec, "w", narrow, convert_dtype{});
  CHECK(same_bits(take(narrow), take(copied)));

  // A file that does not fit leaves the array as it was.
  put(table, poison);
  ferry::tensor<double, TestType> wide("wide", rows, width);
  put(wide, std::vector<double>(rows * width, 5.0));
  CHECK_THROWS_MATCHES(
      ferry::io::load_npy(npy, wide), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("not float64") || ContainsSubstring("convert_dtype")));
  CHECK_THROWS_AS(file.load("w", wide), ferry::invalid_argument);
  CHECK(take(wide) == std::vector<double>(rows * width, 5.0));
  CHECK_THROWS_MATCHES(
      ferry::io::load_npy(npy, table.first(rows - 1)), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("its array is [61 x 13]") && ContainsSubstring("'table' [60 x 13]")));
  CHECK_THROWS_AS(file.load("w", 0, 5, table), ferry::invalid_argument);
  CHECK_THROWS_AS(file.load("w", 5, rows + 1, table), ferry::out_of_range);
  CHECK_THROWS_AS(file.load("v", table), ferry::out_of_range);
  CHECK_THROWS_AS(ferry::io::load_npy(folder.path() + "/none.npy", table), ferry::io_error);
  const auto bytes = bytes_of(npy);
  for (const std::size_t end : {std::size_t{0}, std::size_t{40}, bytes.size() - 1}) {
    write_bytes(folder.path() + "/cut.npy", bytes.substr(0, end));
    CHECK_THROWS_AS(ferry::io::load_npy(folder.path() + "/cut.npy", table), ferry::io_error);
  }
  ferry::tensor<float, TestType> empty;
  CHECK_THROWS_AS(ferry::io::load_npy(npy, empty), ferry::invalid_argument);
  CHECK(take(table) == poison);
}

TEST_CASE("containers, single numbers and strided Views are filled", "[io][npy]") {
  const temporary_folder folder;
  const std::string npy = folder.path() + "/a.npy";
  auto random = generator(542);
  for (int turn = 0; turn < 4; ++turn) {
    const std::size_t n = 1 + random() % 200, m = 1 + random() % 20;
    const auto expected = values<double>(random, n * m);
    ferry::io::save_npy(npy, make<ferry::pageable_space>("from", n, m, expected));
    Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", n, m);
    ferry::io::load_npy(npy, left);
    Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace> deep("deep", n, m, 3);
    Kokkos::deep_copy(deep, -1.0);
    const auto middle = Kokkos::subview(deep, Kokkos::ALL, Kokkos::ALL, 1);
    ferry::io::load_npy(npy, middle);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < m; ++j) {
        REQUIRE(left(i, j) == expected[i * m + j]);
        REQUIRE(deep(i, j, 1) == expected[i * m + j]);
        REQUIRE(deep(i, j, 0) == -1.0);
        REQUIRE(deep(i, j, 2) == -1.0);
      }
    std::vector<double> flat(n * m);
    ferry::io::save_npy(npy, expected);
    ferry::io::load_npy(npy, flat);
    CHECK(flat == expected);
  }
  // A file in Fortran order, into arrays of both layouts.
  ferry::tensor<float, ferry::pageable_space> table("table", 5, 3);
  Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 5, 3);
  ferry::io::load_npy(golden("f4_fortran.npy"), table);
  ferry::io::load_npy(golden("f4_fortran.npy"), left);
  CHECK(is_golden(take(table)));
  for (std::size_t i = 0; i < 15; ++i) CHECK(left(i / 3, i % 3) == golden_value<float>(i));
  // A load waits for the verbs in flight.
  std::vector<float> single(1);
  ferry::io::save_npy(npy, std::vector<float>{42.0f});
  ferry::io::load_npy(npy, single);
  CHECK(single.front() == 42.0f);
}

}  // namespace ferry_test::load_into_test
