// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::copy_test {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& elements) {
  std::vector<To> result;
  for (const auto& value : elements) result.push_back(element<To>(number(value)));
  return result;
}

template <class From, class To, class FromSpace, class ToSpace, class Path>
void copy_by(Path path, std::size_t rows, std::size_t width) {
  CAPTURE(FromSpace::name, ToSpace::name, path.name, rows, width);
  auto random = generator(51);
  const auto content = values<From>(random, rows * width);
  const auto poison = values<To>(random, rows * width);
  const auto source = make<FromSpace>("from", rows, width, content);
  const exec_space exec;
  auto target = make<ToSpace>("to", rows, width, poison);
  ferry::copy(exec, source, target, path).wait();
  CHECK(same_bits(take(target), converted<To>(content)));
}

template <class From, class To, class FromSpace, class ToSpace>
void copy_everywhere(std::size_t rows, std::size_t width) {
  for_covering_paths<FromSpace, ToSpace, work::copies>(
      [&](auto path) { copy_by<From, To, FromSpace, ToSpace>(path, rows, width); });
}

using copy_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("copy between every two spaces", "[copy][once]", copy_points) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  // Three slots, which a host does not fill.
  constexpr std::size_t many = ferry::HostExecutionSpace<exec_space> ? 301 : 3001;
  copy_everywhere<float, float, from, to>(0, 5);
  copy_everywhere<float, float, from, to>(1, 1);
  copy_everywhere<float, float, from, to>(37, 129);
  copy_everywhere<float, float, from, to>(many, 1024);
  // Every space on either side of a conversion.
  if constexpr ((place_of<from> + 1) % 4 == place_of<to>)
    copy_everywhere<float, ferry::half_t, from, to>(37, 129);
  if constexpr ((place_of<from> + 3) % 4 == place_of<to>)
    copy_everywhere<double, std::int32_t, from, to>(many, 700);
}

// All pairs of types are converted in copy_convert_test.cpp; here every type is on both sides of the slots.
using copy_type_points = zipped<decltype(elements), decltype(elements), 0, 1>;
TEMPLATE_LIST_TEST_CASE("copy converts between all number types", "[copy]", copy_type_points) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  copy_by<from, to, ferry::device_space, ferry::mapped_space>(ferry::path::staged{}, 11, 13);
}

TEST_CASE("copy of N-d tensors, spans and vectors", "[copy]") {
  auto random = generator(52);
  const std::size_t size = 2 * 3 * 4 * 5;
  const auto content = values<float>(random, size);
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> image("image", 2, 3, 4, 5);
  ferry::copy(exec, content, image).wait();
  CHECK(same_bits(take(image), content));
  std::vector<float> back(size);
  ferry::copy(exec, image, std::span<float>(back)).wait();
  CHECK(same_bits(back, content));
  ferry::tensor<double, ferry::pageable_space> wider("wider", 2, 3, 4, 5);
  ferry::copy(exec, image, wider).wait();
  CHECK(same_bits(take(wider), converted<double>(content)));

  ferry::tensor<float, ferry::device_space> second("other", 6, 4, 5);
  CHECK_THROWS_MATCHES(ferry::copy(exec, image, second), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'image' [2 x 3 x 4 x 5]") &&
                                      ContainsSubstring("'other' [6 x 4 x 5]")));
  // A tensor of rank 1 has extents like any other; only spans and vectors stand for every shape.
  ferry::tensor<float, ferry::device_space, ferry::extents<ferry::dyn>> flat("flat", size);
  CHECK_THROWS_AS(ferry::copy(exec, image, flat), ferry::invalid_argument);
  std::vector<float> shorter(size - 1);
  CHECK_THROWS_AS(ferry::copy(exec, image, shorter), ferry::invalid_argument);
}

template <class Layout, class FromSpace, class... DenseSpaces>
void copy_from_strided() {
  const std::size_t a = 7, b = 33, c = 5;
  const exec_space exec;
  Kokkos::View<float***, Layout, Kokkos::HostSpace> host("host", a, b, c);
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t j = 0; j < b; ++j)
      for (std::size_t k = 0; k < c; ++k) host(i, j, k) = static_cast<float>(i * 10000 + j * 100 + k);
  const auto source_view = Kokkos::create_mirror_view_and_copy(FromSpace{}, host);
  const auto inner =
      Kokkos::subview(source_view, Kokkos::make_pair(1, 6), Kokkos::make_pair(2, 30), Kokkos::ALL);
  const auto check = [&](auto space) {
    ferry::tensor<float, decltype(space)> dense("dense", 5, 28, c);
    ferry::copy(exec, inner, dense).wait();
    const auto got = take(dense);
    bool equal = true;
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t j = 0; j < 28; ++j)
        for (std::size_t k = 0; k < c; ++k)
          equal = equal && got[(i * 28 + j) * c + k] == host(i + 1, j + 2, k);
    CHECK(equal);

    // And back into a strided array: the elements around it stay.
    Kokkos::View<float***, Layout, Kokkos::HostSpace> poison("poison", a, b, c);
    Kokkos::deep_copy(poison, -1.0f);
    Kokkos::View<float***, Layout, FromSpace> target("target", a, b, c);
    Kokkos::deep_copy(target, poison);
    Kokkos::fence();
    ferry::copy(exec, dense,
                Kokkos::subview(target, Kokkos::make_pair(1, 6), Kokkos::make_pair(2, 30), Kokkos::ALL))
        .wait();
    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, target);
    bool right = true;
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = 0; j < b; ++j)
        for (std::size_t k = 0; k < c; ++k) {
          const bool inside = i >= 1 && i < 6 && j >= 2 && j < 30;
          const float expected = inside ? host(i, j, k) : -1.0f;
          if (right && result(i, j, k) != expected)
            UNSCOPED_INFO(space.name << " (" << i << ", " << j << ", " << k << ") is " << result(i, j, k)
                                     << ", should be " << expected);
          right = right && result(i, j, k) == expected;
        }
    CHECK(right);
  };
  (check(DenseSpaces{}), ...);
}

TEST_CASE("copy takes every stride, on both sides", "[copy]") {
  using ferry::device_space, ferry::pageable_space;
  using here = Kokkos::HostSpace;
  using there = exec_space::memory_space;
  copy_from_strided<Kokkos::LayoutRight, here, device_space, ferry::pinned_space, ferry::mapped_space,
                    pageable_space>();
  copy_from_strided<Kokkos::LayoutRight, there, device_space, ferry::pinned_space, ferry::mapped_space,
                    pageable_space>();
  copy_from_strided<Kokkos::LayoutLeft, here, device_space, pageable_space>();
  copy_from_strided<Kokkos::LayoutLeft, there, device_space, pageable_space>();
}

}  // namespace ferry_test::copy_test
