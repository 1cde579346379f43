// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::gather_spaces_test {

template <class T, class TableSpace, class OutSpace>
void gather_everywhere(std::size_t rows, std::size_t width, std::size_t n) {
  auto random = generator(rows + width * 7 + n);
  const auto content = values<T>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto poison = values<T>(random, n * width);
  const auto table = make<TableSpace>("weights", rows, width, content);
  const exec_space exec;
  for_covering_paths<TableSpace, OutSpace, work::moves>([&](auto path) {
    CAPTURE(TableSpace::name, OutSpace::name, path.name, rows, width, n);
    auto out = make<OutSpace>("batch", n, width, poison);
    ferry::gather(exec, table, ids, out, path).wait();
    CHECK(same_bits(take(out), gathered(content, width, ids, poison)));
  });
}

// Widths around the device's packets and the host's blocks, batches around a warp.
using points_1 = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("gather between every two spaces", "[gather]", points_1) {
  using table_space = at<0, TestType>;
  using out_space = at<1, TestType>;
  for (const std::size_t width : {1u, 3u, 4u, 33u, 128u})
    for (const std::size_t n : {0u, 1u, 31u, 33u, 257u})
      gather_everywhere<float, table_space, out_space>(211, width, n);
}

// An element is a unit of its size, wherever its table is.
using points_2 = zipped<decltype(elements),
                        decltype(axis<ferry::pageable_space, ferry::pinned_space, ferry::mapped_space>), 0>;
TEMPLATE_LIST_TEST_CASE("gather of every element type", "[gather]", points_2) {
  using element = at<0, TestType>;
  using space = at<1, TestType>;
  for (const std::size_t width : {1u, 2u, 8u, 31u, 64u, 65u})
    gather_everywhere<element, space, ferry::device_space>(97, width, 130);
}

// Rows larger than a host block and than a slot, batches of several slots.
using points_3 = product<decltype(spaces), decltype(axis<ferry::device_space, ferry::pageable_space>)>;
TEMPLATE_LIST_TEST_CASE("gather of long rows and of batches that fill the slots", "[gather][once]",
                        points_3) {
  using table_space = at<0, TestType>;
  using out_space = at<1, TestType>;
  gather_everywhere<float, table_space, out_space>(3, 16384 + 5, 4);
  // A host has no ring.
  constexpr bool on_host = ferry::HostExecutionSpace<exec_space>;
  gather_everywhere<float, table_space, out_space>(2, (std::size_t{1} << (on_host ? 17 : 20)) + 4, 3);
  gather_everywhere<float, table_space, out_space>(500, 128, on_host ? 3000 : 30000);
}

}  // namespace ferry_test::gather_spaces_test
