// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/interop/mdspan.hpp>

namespace ferry_test::mdspan_test {

#if defined(MDSPAN_IMPL_STANDARD_NAMESPACE) || defined(__cpp_lib_mdspan)

namespace md = ferry::detail::mdspans;

ferry::tensor<float, ferry::device_space> make_cube(const std::vector<float>& contents) {
  ferry::tensor<float, ferry::device_space> table("table", 2, 3, 4);
  put(table, contents);
  return table;
}

TEST_CASE("verbs take mdspans", "[mdspan]") {
  auto random = generator();
  const exec_space exec;
  const auto contents = values<float>(random, 40);
  const auto table = make<ferry::mapped_space>("table", 10, 4, contents);
  std::vector<std::int32_t> list{9, 0, 4};
  const md::mdspan<const std::int32_t, md::dextents<std::size_t, 1>> indices(list.data(), 3);
  std::vector<float> memory(12, -1.0f);
  const md::mdspan<float, md::extents<std::size_t, md::dynamic_extent, 4>> batch(memory.data(), 3);
  STATIC_CHECK(ferry::array_traits<std::remove_const_t<decltype(batch)>>::static_width == 4);
  ferry::gather(exec, table, indices, batch).wait();
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t j = 0; j < 4; ++j)
      CHECK(memory[4 * p + j] == contents[4 * static_cast<std::size_t>(list[p]) + j]);

  std::vector<float> storage(40, 0.0f);
  const md::mdspan<float, md::dextents<int, 2>> rows(storage.data(), 10, 4);
  ferry::scatter(exec, rows, indices, batch).wait();
  for (std::size_t j = 0; j < 4; ++j) CHECK(storage[36 + j] == memory[j]);
}

TEST_CASE("copy takes mdspans of every strided layout", "[mdspan]") {
  auto random = generator();
  const exec_space exec;
  const auto contents = values<float>(random, 24);
  const auto table = make_cube(contents);
  std::vector<float> left(24, -1.0f);
  const md::mdspan<float, md::dextents<std::size_t, 3>, md::layout_left> columns(left.data(), 2, 3, 4);
  STATIC_CHECK(!ferry::is_row_major_v<std::remove_const_t<decltype(columns)>>);
  ferry::copy(exec, table, columns).wait();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) CHECK(left[i + 2 * j + 6 * k] == contents[12 * i + 4 * j + k]);

  std::vector<float> wide(60, -1.0f);
  using strided = md::layout_stride::mapping<md::dextents<std::size_t, 3>>;
  const md::mdspan<float, md::dextents<std::size_t, 3>, md::layout_stride> gaps(
      wide.data(), strided(md::dextents<std::size_t, 3>(2, 3, 4), std::array<std::size_t, 3>{30, 10, 2}));
  ferry::copy(exec, table, gaps).wait();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) {
        CHECK(wide[30 * i + 10 * j + 2 * k] == contents[12 * i + 4 * j + k]);
        CHECK(wide[30 * i + 10 * j + 2 * k + 1] == -1.0f);
      }
  const std::vector<int> indices{0};
  ferry::tensor<float, ferry::pageable_space> batch("batch", 1, 3, 4);
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, gaps, indices, batch), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'mdspan' [2 x 3 x 4]") && ContainsSubstring("strided")));
}

TEST_CASE("a tensor in host memory is an mdspan", "[mdspan]") {
  ferry::tensor<float, ferry::mapped_space> table("table", 6, 4);
  const auto span = ferry::to_mdspan(table);
  STATIC_CHECK(decltype(span)::rank() == 2);
  CHECK(span.data_handle() == table.data());
  CHECK((span.extent(0) == 6 && span.extent(1) == 4 && span.stride(0) == 4));
  STATIC_CHECK(std::is_same_v<decltype(ferry::to_mdspan(std::as_const(table)))::element_type, const float>);
  CHECK(ferry::to_mdspan(table.rows_between(2, 5)).extent(0) == 3);
  CHECK(ferry::to_mdspan(table.view()).data_handle() == table.data());

  ferry::tensor<float, ferry::pinned_space, ferry::extents<ferry::dyn, 3, 4>> fixed("fixed", 2);
  const auto of_fixed = ferry::to_mdspan(fixed);
  STATIC_CHECK(decltype(of_fixed)::static_extent(2) == 4);
  STATIC_CHECK(decltype(of_fixed)::static_extent(0) == md::dynamic_extent);
  CHECK(of_fixed.extent(0) == 2);
  CHECK(ferry::to_mdspan<2>(fixed).extent(1) == 12);

  ferry::tensor<float, ferry::pageable_space> line("line", 9);
  CHECK(ferry::to_mdspan<1>(line).extent(0) == 9);
  CHECK_THROWS_MATCHES(ferry::to_mdspan(line), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'line' of rank 1")));
  CHECK(ferry::make_ref(span).is_contiguous());
}

/// An accessor of a program's own that names its space.
struct pinned_accessor : md::default_accessor<float> {
  using memory_space = ferry::pinned_space;
};

TEST_CASE("an accessor names the space of an mdspan", "[mdspan]") {
  ferry::tensor<float, ferry::pinned_space> table("table", 6, 4);
  using span_type = md::mdspan<float, md::dextents<std::size_t, 2>, md::layout_right, pinned_accessor>;
  const span_type span(table.data(), 6, 4);
  STATIC_CHECK(std::is_same_v<ferry::array_traits<span_type>::memory_space, ferry::pinned_space>);
  ferry::init::constant(exec_space(), span, 3.0f);
  CHECK(take(table) == std::vector<float>(24, 3.0f));

  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace> view("view", 3, 2);
  ferry::init::constant(Kokkos::DefaultHostExecutionSpace(), view.to_mdspan(), 2.0f);
  CHECK(view(2, 1) == 2.0f);
}

#endif

}  // namespace ferry_test::mdspan_test
