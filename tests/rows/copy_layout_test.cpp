// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"
#include "conversion.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <iterator>

namespace ferry_test::copy_layout_test {

/// Moved in units of four bytes, three to an element.
struct triple {
  std::int32_t first, second, third;
};

template <class T>
std::vector<T> fresh(std::mt19937_64& random, std::size_t count) {
  if constexpr (ferry::NumberElement<T>) {
    return values<T>(random, count);
  } else {
    std::vector<T> result(count);
    for (auto& value : result)
      value = {static_cast<std::int32_t>(random()), static_cast<std::int32_t>(random()),
               static_cast<std::int32_t>(random())};
    return result;
  }
}

template <class To, class From>
To as(const From& value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else
    return converted_once<To>(value);
}

template <class FromSpace, class ToSpace, class From, class To, class Path>
void copy_layouts(std::mt19937_64& random, const layout& source, const layout& sink, Path path) {
  CAPTURE(FromSpace::name, ToSpace::name, path.name, source.text(), sink.text());
  const auto content = fresh<From>(random, static_cast<std::size_t>(source.size));
  auto expected = fresh<To>(random, static_cast<std::size_t>(sink.size));
  auto source_memory = make<FromSpace>("from", content);
  auto sink_memory = make<ToSpace>("to", expected);
  const exec_space exec;
  ferry::copy(exec, array_in(source_memory, source), array_in(sink_memory, sink), path).wait();
  const auto source_places = source.places(), sink_places = sink.places();
  for (std::size_t i = 0; i < source_places.size(); ++i)
    expected[sink_places[i]] = as<To>(content[source_places[i]]);
  CHECK(same_bits(take(sink_memory), expected));
}

/// Every arrangement on either side for each rank, every pair over all ranks.
template <class FromSpace, class ToSpace, class From, class To>
void copy_all_layouts(std::size_t salt, std::int64_t elements) {
  auto random = generator(salt);
  for (std::size_t rank = 1; rank <= ferry::max_rank; ++rank) {
    const auto extents = random_extents(random, rank, elements);
    constexpr std::size_t count = std::size(arrangements);
    for (std::size_t i = 0; i < count; ++i) {
      const auto source = arrange(random, extents, arrangements[i]);
      const auto sink = arrange(random, extents, arrangements[(i + rank) % count]);
      for_covering_paths<FromSpace, ToSpace, work::copies>(
          [&](auto path) { copy_layouts<FromSpace, ToSpace, From, To>(random, source, sink, path); });
    }
  }
}

using layout_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("copy takes every rank and every layout on both sides", "[copy][layout]",
                        layout_points) {
  copy_all_layouts<at<0, TestType>, at<1, TestType>, float, float>(91, 700);
}

TEST_CASE("copy converts between all layouts", "[copy][layout]") {
  using device = ferry::device_space;
  using pageable = ferry::pageable_space;
  copy_all_layouts<pageable, device, double, float>(92, 600);
  copy_all_layouts<device, pageable, float, std::int32_t>(93, 600);
  copy_all_layouts<device, device, ferry::half_t, double>(94, 600);
}

TEST_CASE("copy moves elements of every size between all layouts", "[copy][layout]") {
  using device = ferry::device_space;
  using pageable = ferry::pageable_space;
  copy_all_layouts<pageable, device, triple, triple>(95, 500);
  copy_all_layouts<device, pageable, triple, triple>(96, 500);
  copy_all_layouts<pageable, device, std::int8_t, std::int8_t>(97, 900);
  copy_all_layouts<device, device, std::int8_t, std::int8_t>(98, 900);
  copy_all_layouts<device, device, double, double>(99, 700);
}

TEST_CASE("transposes of matrices that straddle tiles", "[copy][layout]") {
  auto random = generator(100);
  for (const std::int64_t rows : {1, 3, 4, 31, 32, 33, 100, 257})
    for (const std::int64_t columns : {2, 4, 16, 17, 64, 129}) {
      layout shape;
      shape.rank = 2;
      shape.extents = {rows, columns};
      const auto source = arrange(random, shape, arrangement::row_major);
      const auto sink = arrange(random, shape, arrangement::column_major);
      copy_layouts<ferry::device_space, ferry::device_space, float, float>(random, source, sink,
                                                                           ferry::path::direct{});
      copy_layouts<ferry::device_space, ferry::device_space, float, ferry::bhalf_t>(random, sink, source,
                                                                                    ferry::path::direct{});
      copy_layouts<ferry::pageable_space, ferry::device_space, float, float>(random, source, sink,
                                                                             ferry::path::staged{});
      copy_layouts<ferry::device_space, ferry::pageable_space, float, float>(random, source, sink,
                                                                             ferry::path::staged{});
    }
}

TEST_CASE("a source may repeat elements, a destination may not", "[copy][layout]") {
  const exec_space exec;
  auto random = generator(101);
  const auto row = values<float>(random, 50);
  auto source = make<ferry::device_space>("row", row);
  ferry::tensor<float, ferry::pageable_space> target("matrix", 20, 50);
  layout wide;
  wide.rank = 2;
  wide.extents = {20, 50};
  wide.strides = {0, 1};
  ferry::copy(exec, array_in(source, wide), target).wait();
  const auto got = take(target);
  bool equal = true;
  for (std::size_t i = 0; i < got.size(); ++i) equal = equal && got[i] == row[i % 50];
  CHECK(equal);
  CHECK_THROWS_MATCHES(
      ferry::copy(exec, target, array_in(source, wide)), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("ferry::copy") && ContainsSubstring("'row' [20 x 50]") &&
                     ContainsSubstring("share memory")));
  CHECK(same_bits(take(source), row));
}

TEST_CASE("a sequence fits the extents of a strided array", "[copy][layout]") {
  const exec_space exec;
  auto random = generator(102);
  const auto extents = random_extents(random, 4, 500);
  const auto shape = arrange(random, extents, arrangement::spread);
  const auto offsets = shape.places();
  const auto content = values<float>(random, offsets.size());
  auto expected = values<float>(random, static_cast<std::size_t>(shape.size));
  auto memory = make<ferry::device_space>("memory", expected);
  ferry::copy(exec, content, array_in(memory, shape)).wait();
  for (std::size_t i = 0; i < offsets.size(); ++i) expected[offsets[i]] = content[i];
  CHECK(same_bits(take(memory), expected));
  std::vector<float> back(content.size());
  ferry::copy(exec, array_in(memory, shape), back).wait();
  CHECK(same_bits(back, content));
}

}  // namespace ferry_test::copy_layout_test
