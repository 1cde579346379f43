// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::tensor_test {

using Catch::Matchers::StartsWith;

/// element(i, j, k) = 10000 i + 100 j + k, through the view.
template <class View>
struct write_places {
  View view;
  KOKKOS_FUNCTION void operator()(int i) const {
    for (std::size_t j = 0; j < view.extent(1); ++j)
      for (std::size_t k = 0; k < view.extent(2); ++k)
        view(i, j, k) = 10000 * i + 100 * static_cast<int>(j) + static_cast<int>(k);
  }
};

/// sums[0] = the number of elements that are not at their place, read through a view of constants.
template <class View>
struct count_misplaced {
  View view;
  KOKKOS_FUNCTION void operator()(int i, int& wrong) const {
    for (std::size_t j = 0; j < view.extent(1); ++j)
      for (std::size_t k = 0; k < view.extent(2); ++k)
        wrong += view(i, j, k) != 10000 * i + 100 * static_cast<int>(j) + static_cast<int>(k);
  }
};

template <class Tensor>
void check_views(Tensor& cube) {
  const exec_space exec;
  using rows = Kokkos::RangePolicy<exec_space>;
  const auto view = cube.view();
  Kokkos::parallel_for("ferry_test::write", rows(exec, 0, static_cast<int>(cube.rows())),
                       write_places<std::remove_const_t<decltype(view)>>{view});
  const auto values = take(cube);
  std::size_t position = 0;
  for (std::size_t i = 0; i < cube.extent(0); ++i)
    for (std::size_t j = 0; j < cube.extent(1); ++j)
      for (std::size_t k = 0; k < cube.extent(2); ++k)
        REQUIRE(values[position++] == static_cast<int>(10000 * i + 100 * j + k));
  using constant =
      ferry::tensor_view<const int, typename Tensor::memory_space, typename Tensor::extents_type>;
  const constant converted = view;
  const constant of_const = std::as_const(cube).view();
  for (const auto& alias : {converted, of_const}) {
    int wrong = -1;
    Kokkos::parallel_reduce("ferry_test::count", rows(exec, 0, static_cast<int>(cube.rows())),
                            count_misplaced<constant>{alias}, wrong);
    CHECK(wrong == 0);
  }
  CHECK(view.rows() == cube.rows());
  CHECK(view.width() == cube.width());
  CHECK(view.size() == cube.size());
  CHECK(view.rank() == 3);
  CHECK(view.data() == cube.data());
  STATIC_CHECK(std::is_trivially_copyable_v<constant>);
}

TEMPLATE_TEST_CASE("views of three indices work in kernels", "[tensor]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space) {
  ferry::tensor<int, TestType> dynamic("dynamic", 5, 7, 11);
  check_views(dynamic);
  ferry::tensor<int, TestType, ferry::extents<ferry::dyn, 7, 11>> fixed("fixed", 5);
  check_views(fixed);
}

TEMPLATE_TEST_CASE("a tensor is owned once and moves", "[tensor]", ferry::device_space, ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  using table = ferry::tensor<std::int32_t, TestType>;
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<table>);
  STATIC_CHECK_FALSE(std::is_copy_assignable_v<table>);
  STATIC_CHECK(std::is_nothrow_move_constructible_v<table>);
  STATIC_CHECK(std::is_nothrow_move_assignable_v<table>);

  auto random = generator();
  const auto contents = values<std::int32_t>(random, 60);
  auto first = make<TestType>("first", 5, 12, contents);
  auto* const data = first.data();
  table second = std::move(first);
  CHECK(second.data() == data);
  CHECK(second.label() == "first");
  CHECK(second.rows() == 5);
  CHECK(take(second) == contents);
  CHECK(first.data() == nullptr);
  CHECK(first.size() == 0);
  CHECK(first.rank() == 0);

  const auto numbers = values<std::int32_t>(random, 6);
  table third = make<TestType>("third", 2, 3, numbers);
  third = std::move(second);
  CHECK(third.data() == data);
  CHECK(third.width() == 12);
  CHECK(take(third) == contents);
  CHECK(second.data() == nullptr);

  table empty;
  CHECK(empty.rank() == 0);
  CHECK(empty.size() == 0);
  CHECK(empty.data() == nullptr);
  CHECK(empty.accesses() == nullptr);
  empty = std::move(third);
  CHECK(take(empty) == contents);
}

TEMPLATE_TEST_CASE("a tensor describes itself", "[tensor]", ferry::device_space, ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  const ferry::tensor<float, TestType> table("weights", 1000, 128);
  const auto text = table.describe();
  CHECK_THAT(text, StartsWith("'weights' [1000 x 128] in " + std::string(TestType::name) + ": "));
  CHECK(text.size() > std::string("'weights' [1000 x 128] in " + std::string(TestType::name) + ": ").size());
}

TEST_CASE("a view of a tensor has its label in observers and messages", "[tensor]") {
  ferry::tensor<float, ferry::mapped_space> table("weights", 10, 4), batch("batch", 2, 4);
  CHECK(table.view().label() == "weights");
  CHECK(std::as_const(table).view().label() == "weights");
  const ferry::tensor_view<const float, ferry::mapped_space> read_only = table.view();
  CHECK(read_only.label() == "weights");
  const auto moved = std::move(table);
  CHECK(read_only.label() == "weights");
  CHECK_THROWS_MATCHES(
      ferry::gather(Kokkos::DefaultExecutionSpace{}, read_only, std::vector{3, 12}, batch).wait(),
      ferry::out_of_range, MessageMatches(ContainsSubstring("'weights'")));
  // Memory of others may outlive the tensor, so the view does not refer to its label.
  std::vector<float> memory(12);
  const auto adopted = ferry::adopt<ferry::pageable_space>("adopted", std::span<float>(memory), 3, 4).view();
  CHECK(adopted.label() == "view");
  CHECK(ferry::tensor_view(memory.data(), 3, 4).label() == "view");
  CHECK(ferry::tensor<float, ferry::mapped_space>().view().label() == "view");
  CHECK(ferry::tensor<float, ferry::mapped_space>("none", 0, 2).view().label() == "view");
  const ferry::tensor<float, ferry::mapped_space> unnamed("", 2, 2);
  CHECK(unnamed.view().label().empty());
  // A verb copies the label into memory of its own: a long one is cut.
  ferry::tensor<float, ferry::mapped_space> second("a label of more than thirty-one characters", 10, 4);
  CHECK(second.view().label() == "a label of more than thirty-one characters");
  const auto ref = ferry::make_ref(std::as_const(read_only));
  CHECK(std::string(ref.label) == "weights");
  const auto view = second.view();
  CHECK(std::string(ferry::make_ref(view).label) == "a label of more than thirty-one");
}

TEST_CASE("a tensor over somebody else's memory drops its owner", "[tensor]") {
  std::vector<float> memory(12, 1.5f);
  auto owner = std::make_shared<int>(0);
  const std::array<std::size_t, 2> sizes{3, 4};
  {
    ferry::tensor<float, ferry::pageable_space> over(
        "over", ferry::shape<ferry::dynamic_rank>::make(sizes, "over", sizeof(float)), memory.data(), owner);
    CHECK(owner.use_count() == 2);
    CHECK(over.data() == memory.data());
    CHECK_THAT(over.describe(), ContainsSubstring("adopted"));
    auto moved = std::move(over);
    CHECK(owner.use_count() == 2);
    over = ferry::tensor<float, ferry::pageable_space>();
    CHECK(owner.use_count() == 2);
  }
  CHECK(owner.use_count() == 1);
}

TEMPLATE_TEST_CASE("to_kokkos gives a view of the same memory", "[tensor]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  const auto contents = values<float>(random, 24);
  auto table = make<TestType>("table", 6, 4, contents);
  auto view = ferry::to_kokkos(table);
  STATIC_CHECK(decltype(view)::rank() == 2);
  STATIC_CHECK(std::is_same_v<typename decltype(view)::array_layout, Kokkos::LayoutRight>);
  STATIC_CHECK(std::is_same_v<typename decltype(view)::value_type, float>);
  CHECK(view.data() == table.data());
  CHECK(view.extent(0) == 6);
  CHECK(view.extent(1) == 4);
  CHECK(view.stride(0) == 4);
  auto constant = ferry::to_kokkos(std::as_const(table));
  STATIC_CHECK(std::is_same_v<typename decltype(constant)::value_type, const float>);
  CHECK(constant.data() == table.data());

  ferry::tensor<float, TestType> cube("cube", 2, 3, 4);
  auto flat = ferry::to_kokkos(cube);
  CHECK(flat.extent(0) == 2);
  CHECK(flat.extent(1) == 12);
  CHECK(ferry::to_kokkos<3>(cube).extent(2) == 4);
  CHECK_THROWS_MATCHES(ferry::to_kokkos<1>(cube), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'cube'") && ContainsSubstring("rank 1")));
  CHECK_THROWS_AS(ferry::to_kokkos<4>(cube), ferry::invalid_argument);

  ferry::tensor<float, TestType, ferry::extents<ferry::dyn, 3, 4>> fixed("fixed", 2);
  STATIC_CHECK(decltype(ferry::to_kokkos(fixed))::rank() == 3);
  ferry::tensor<float, TestType> line("line", 9);
  CHECK(ferry::to_kokkos<1>(line).extent(0) == 9);
  CHECK_THROWS_MATCHES(
      ferry::to_kokkos(line), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'line' of rank 1") && ContainsSubstring("to_kokkos<1>(array)")));
  CHECK(ferry::to_kokkos<1>(line.view()).data() == line.data());
  CHECK(ferry::to_kokkos<1>(std::as_const(line).view()).extent(0) == 9);
  ferry::tensor<float, TestType, ferry::extents<ferry::dyn>> list("list", 9);
  STATIC_CHECK(decltype(ferry::to_kokkos(list))::rank() == 1);
  STATIC_CHECK(decltype(ferry::to_kokkos(list.view()))::rank() == 1);
  STATIC_CHECK(decltype(ferry::to_kokkos(list.first(3)))::rank() == 1);
  CHECK(ferry::to_kokkos(list.first(3)).extent(0) == 3);
  CHECK(ferry::to_kokkos(cube.view()).extent(1) == 12);
  CHECK(ferry::to_kokkos(fixed.view()).extent(2) == 4);

  // A ferry tensor and the view of it are the same array to the verbs.
  using space = typename ferry::array_traits<decltype(view)>::memory_space;
  CHECK(space::is_host_accessible ==
        (TestType::is_host_accessible || ferry::detail::device_is_host<TestType>));
  const auto ref = ferry::make_ref(view);
  CHECK(ref.rows() == 6);
  CHECK(ref.is_contiguous());
}

TEST_CASE("a type that fixes all extents needs none from its constructor", "[tensor]") {
  const ferry::tensor<float, ferry::mapped_space, ferry::extents<10, 6>> fixed("fixed");
  CHECK(fixed.rows() == 10);
  CHECK(fixed.width() == 6);
  const ferry::tensor<float, ferry::device_space> handle;
  CHECK(handle.describe() == "'' [] in device_space: no memory");
}

TEST_CASE("a view of sizes given one by one", "[tensor]") {
  std::vector<float> memory(24);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const ferry::tensor_view<const float, ferry::pageable_space> view(memory.data(), 2, 3, 4);
  CHECK(view.rank() == 3);
  CHECK(view.rows() == 2);
  CHECK(view.width() == 12);
  CHECK(view(1, 2, 3) == 23.0f);
  const ferry::tensor_view<float, ferry::pageable_space, ferry::extents<ferry::dyn>> flat(memory.data(), 24);
  CHECK(flat.rank() == 1);
  CHECK(flat(23) == 23.0f);
  using of_width_4 = ferry::tensor_view<float, ferry::pageable_space, ferry::extents<ferry::dyn, 4>>;
  CHECK(of_width_4(memory.data(), 6)(5, 3) == 23.0f);
  CHECK_THROWS_AS(of_width_4(memory.data(), 6, 5), ferry::invalid_argument);
  using wrong = ferry::tensor_view<float, ferry::pageable_space>;
  CHECK_THROWS_MATCHES(wrong(memory.data(), 2, -3), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("-3 is negative")));
}

TEMPLATE_TEST_CASE("adopted memory is the user's, not a copy", "[adopt]", ferry::pinned_space,
                   ferry::pageable_space) {
  auto random = generator();
  auto memory = values<float>(random, 40 * 24);
  const auto before = memory;
  {
    auto table = ferry::adopt<TestType>(std::span<float>(memory), 40, 24);
    CHECK(table.data() == memory.data());
    CHECK(table.rows() == 40);
    CHECK(table.width() == 24);
    CHECK_THAT(table.describe(),
               ContainsSubstring("adopted") && ContainsSubstring(std::string(TestType::name)));

    const exec_space exec;
    const auto chosen = indices<std::int64_t>(random, 17, 40);
    ferry::tensor<float, ferry::device_space> batch("batch", 17, 24);
    ferry::gather(exec, table, chosen, batch).wait();
    const auto rows = take(batch);
    for (std::size_t p = 0; p < 17; ++p)
      for (std::size_t j = 0; j < 24; ++j)
        REQUIRE(rows[p * 24 + j] == memory[static_cast<std::size_t>(chosen[p]) * 24 + j]);

    const std::vector<std::int64_t> index{39};
    const auto fresh = make<ferry::device_space>("fresh", 1, 24, std::vector<float>(24, 77.0f));
    ferry::scatter(exec, table, index, fresh).wait();
    auto moved = std::move(table);
    CHECK(moved.data() == memory.data());
  }
  for (std::size_t i = 0; i < memory.size(); ++i) REQUIRE(memory[i] == (i < 39 * 24 ? before[i] : 77.0f));
  // Free for another tensor once the first one is gone.
  auto second = ferry::adopt<TestType>(std::span<float>(memory), 24, 40);
  CHECK(second.width() == 40);
}

TEMPLATE_TEST_CASE("adopt refuses extents that are not the memory's", "[adopt]", ferry::pinned_space,
                   ferry::pageable_space) {
  std::vector<float> memory(12);
  const std::span<float> span(memory);
  CHECK_THROWS_MATCHES(ferry::adopt<TestType>(span, 3, 5), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("12 elements") && ContainsSubstring("[3 x 5]")));
  CHECK_THROWS_AS(ferry::adopt<TestType>(span, 3, 3), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::adopt<TestType>(span, 13), ferry::invalid_argument);
  CHECK_THROWS_MATCHES(ferry::adopt<TestType>(span, -3, -4), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("-3") && ContainsSubstring("negative")));
  CHECK(ferry::adopt<TestType>(span, 2, 2, 3).rank() == 3);
  CHECK(ferry::adopt<TestType>(span, 12).rank() == 1);
}

TEMPLATE_TEST_CASE("nothing can be adopted", "[adopt]", ferry::pinned_space, ferry::pageable_space) {
  const auto none = ferry::adopt<TestType>(std::span<double>{}, 0, 8);
  CHECK(none.size() == 0);
  CHECK(none.width() == 8);
}

}  // namespace ferry_test::tensor_test
