// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::array_traits_test {

/// An array of somebody else's: rows of `width` elements, `pitch` elements apart, in ordinary memory.
struct pitched_image {
  std::vector<float> memory;
  std::size_t rows, width, pitch;
};

}  // namespace ferry_test::array_traits_test

template <>
struct ferry::array_traits<ferry_test::array_traits_test::pitched_image> {
  using value_type = float;
  using memory_space = ferry::pageable_space;
  static constexpr std::size_t static_width = ferry::dyn;
  static auto ref(ferry_test::array_traits_test::pitched_image& image) {
    return made(image.memory.data(), image);
  }
  static auto ref(const ferry_test::array_traits_test::pitched_image& image) {
    return made(image.memory.data(), image);
  }

 private:
  template <class T>
  static ferry::detail::array_ref<T, memory_space> made(
      T* data, const ferry_test::array_traits_test::pitched_image& image) {
    ferry::detail::array_ref<T, memory_space> ref;
    ref.data = data;
    ref.rank = 2;
    ref.extents = {static_cast<std::int64_t>(image.rows), static_cast<std::int64_t>(image.width)};
    ref.strides = {static_cast<std::int64_t>(image.pitch), 1};
    ref.label = "image";
    return ref;
  }
};

namespace ferry_test::array_traits_test {

TEST_CASE("array_traits knows tensors, views, spans and vectors", "[array_traits]") {
  STATIC_CHECK(ferry::ArrayLike<ferry::tensor<float, ferry::mapped_space>>);
  STATIC_CHECK(ferry::ArrayLike<const ferry::tensor<float, ferry::mapped_space>>);
  STATIC_CHECK(ferry::ArrayLike<ferry::tensor_view<float, ferry::mapped_space>>);
  STATIC_CHECK(ferry::ArrayLike<Kokkos::View<float**>>);
  STATIC_CHECK(ferry::ArrayLike<std::span<float>>);
  STATIC_CHECK(ferry::ArrayLike<const std::span<const float>>);
  STATIC_CHECK(ferry::ArrayLike<std::span<float, 4>>);
  STATIC_CHECK(ferry::ArrayLike<std::vector<float>>);
  STATIC_CHECK(ferry::ArrayLike<pitched_image>);
  STATIC_CHECK_FALSE(ferry::ArrayLike<std::vector<bool>>);
  STATIC_CHECK_FALSE(ferry::ArrayLike<float*>);
  STATIC_CHECK_FALSE(ferry::ArrayLike<int>);
}

TEST_CASE("constness of an array is constness of its elements", "[array_traits]") {
  ferry::tensor<float, ferry::mapped_space> table("table", 3, 4);
  [[maybe_unused]] const auto& fixed = table;
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(table).data), float*>);
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(fixed).data), const float*>);
  std::vector<double> numbers(3);
  [[maybe_unused]] const auto& same = numbers;
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(numbers).data), double*>);
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(same).data), const double*>);
  const std::span<double> some(numbers);
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(some).data), double*>);
  const std::span<const double> constant(numbers);
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(constant).data), const double*>);
}

TEST_CASE("spans and vectors are pageable arrays of rank 1", "[array_traits]") {
  std::vector<std::int32_t> numbers(5, 7);
  const auto ref = ferry::make_ref(numbers);
  STATIC_CHECK(std::is_same_v<decltype(ref)::memory_space, ferry::pageable_space>);
  CHECK(ref.rank == 1);
  CHECK(ref.rows() == 5);
  CHECK(ref.width() == 1);
  CHECK(ref.is_contiguous());
  std::span<std::int32_t> part(numbers.data() + 1, 3);
  CHECK(ferry::make_ref(part).data == numbers.data() + 1);
  CHECK(ferry::make_ref(part).rows() == 3);
}

TEST_CASE("layouts of Kokkos views are taken over with their strides", "[array_traits]") {
  Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace> right("right", 4, 6);
  const auto row_major = ferry::make_ref(right);
  CHECK(row_major.label == "right");
  CHECK(row_major.has_dense_rows());
  CHECK(row_major.is_contiguous());
  STATIC_CHECK(ferry::is_row_major_v<decltype(right)>);

  Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 4, 6);
  const auto column_major = ferry::make_ref(left);
  CHECK(column_major.strides[0] == 1);
  CHECK(column_major.strides[1] == static_cast<std::int64_t>(left.stride(1)));
  CHECK_FALSE(column_major.has_dense_rows());
  STATIC_CHECK_FALSE(ferry::is_row_major_v<decltype(left)>);

  // A column of a matrix is an array of rank 1 whose elements lie apart.
  const auto column = Kokkos::subview(right, Kokkos::ALL, 2);
  const auto strided = ferry::make_ref(column);
  CHECK(strided.rank == 1);
  CHECK(strided.data == &right(0, 2));
  CHECK(strided.row_stride() == 6);
  CHECK(strided.has_dense_rows());
  CHECK_FALSE(strided.is_contiguous());

  Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace> any(right.data(),
                                                                     Kokkos::LayoutStride(2, 12, 3, 2));
  const auto spread = ferry::make_ref(any);
  CHECK(spread.strides[0] == 12);
  CHECK(spread.strides[1] == 2);
  CHECK_FALSE(spread.has_dense_rows());
  STATIC_CHECK_FALSE(ferry::is_row_major_v<decltype(any)>);

  Kokkos::View<const float***, Kokkos::LayoutRight, Kokkos::HostSpace> cube(right.data(), 2, 3, 4);
  const auto deep = ferry::make_ref(cube);
  CHECK(deep.rank == 3);
  CHECK(deep.width() == 12);
  CHECK(deep.is_contiguous());
}

TEST_CASE("a view of rank 0 holds one element", "[array_traits]") {
  Kokkos::View<float, Kokkos::HostSpace> source("from");
  Kokkos::View<float, Kokkos::HostSpace> target("to");
  source() = 4.5f;
  CHECK(ferry::make_ref(source).size() == 1);
  ferry::copy(exec_space{}, source, target).wait();
  CHECK(target() == 4.5f);
}

TEST_CASE("describe names label, extents and space", "[array_traits]") {
  const ferry::tensor<float, ferry::mapped_space> table("weights", 1000, 128);
  CHECK(ferry::make_ref(table).describe() == "'weights' [1000 x 128] in mapped_space");
}

TEST_CASE("a user's own array type takes part in the verbs", "[array_traits]") {
  pitched_image image{std::vector<float>(5 * 8, -1.0f), 5, 6, 8};
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 6; ++j) image.memory[i * 8 + j] = static_cast<float>(10 * i + j);
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 6);
  const std::vector<std::int32_t> indices{4, 1};
  ferry::gather(exec, image, indices, batch, ferry::path::staged{}).wait();
  auto rows = take(batch);
  for (std::size_t j = 0; j < 6; ++j) {
    CHECK(rows[j] == static_cast<float>(40 + j));
    CHECK(rows[6 + j] == static_cast<float>(10 + j));
  }
  for (auto& value : rows) value += 0.5f;
  put(batch, rows);
  ferry::scatter(exec, image, indices, batch, ferry::path::staged{}).wait();
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      const float expected = j >= 6               ? -1.0f
                             : (i == 4 || i == 1) ? static_cast<float>(10 * i + j) + 0.5f
                                                  : static_cast<float>(10 * i + j);
      CHECK(image.memory[i * 8 + j] == expected);
    }
  ferry::tensor<float, ferry::pageable_space> dense("dense", 5, 6);
  ferry::copy(exec, image, dense).wait();
  CHECK(take(dense)[6 * 3 + 2] == 32.0f);
  pitched_image narrow{std::vector<float>(5 * 8), 5, 5, 8};
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, narrow, indices, batch, ferry::path::staged{}), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'image' [5 x 5]") && ContainsSubstring("'batch' [2 x 6]")));
}

}  // namespace ferry_test::array_traits_test
