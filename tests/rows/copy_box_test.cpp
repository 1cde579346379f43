// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/launch_box.hpp>
#include <ferry/rows/detail/transfer_box.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// The parts of a copy, each against plain loops. Kernels of a device are called here element by element.
namespace ferry_test::copy_box_test {

namespace {

using ferry::detail::copy_box;
using side = copy_box::side;

/// A box and what it must do.
struct problem {
  copy_box box;
  std::vector<float> from, to, expected;
  std::int64_t from_first, to_first;

  problem(std::mt19937_64& random, const layout& source, const layout& sink)
      : from(values<float>(random, static_cast<std::size_t>(source.size))),
        to(values<float>(random, static_cast<std::size_t>(sink.size))),
        expected(to),
        from_first(source.first),
        to_first(sink.first) {
    for (std::size_t d = 0; d < source.rank; ++d)
      box.append(source.extents[d], sink.strides[d], source.strides[d]);
    const auto here = source.places(), there = sink.places();
    for (std::size_t i = 0; i < here.size(); ++i) expected[there[i]] = from[here[i]];
  }
  [[nodiscard]] const float* source() const { return from.data() + from_first; }
  [[nodiscard]] float* sink() { return to.data() + to_first; }
};

problem random_problem(std::mt19937_64& random, std::size_t rank, std::int64_t elements) {
  const auto extents = random_extents(random, rank, elements);
  const auto source = arrange(random, extents, arrangements[random() % std::size(arrangements)]);
  const auto sink = arrange(random, extents, arrangements[random() % std::size(arrangements)]);
  return {random, source, sink};
}

}  // namespace

TEST_CASE("a box keeps its elements, however it is ordered, split or packed", "[copy][box]") {
  auto random = generator(120);
  for (int repeat = 0; repeat < 300; ++repeat) {
    auto of = random_problem(random, 1 + random() % 8, 300);
    const auto lead = repeat % 2 == 0 ? side::target : side::source;
    const copy_box box = of.box.ordered(lead);
    REQUIRE(box.size() == of.box.size());
    for (std::size_t d = 1; d <= box.last(); ++d)
      CHECK(std::abs(box.strides(lead)[d - 1]) >= std::abs(box.strides(lead)[d]));
    // Packed and unpacked, in items: both halves of a copy through slots.
    const ferry::detail::box_items items(box, 1 + static_cast<std::int64_t>(random() % 40));
    CHECK(items.count() * items.item() == box.size());
    std::vector<float> slot(static_cast<std::size_t>(box.size()));
    const ferry::detail::caller_thread here;
    for (std::int64_t first = 0; first < items.count();) {
      const auto count =
          std::min<std::int64_t>(items.count() - first, 1 + static_cast<std::int64_t>(random() % 9));
      float* const begin = slot.data() + first * items.item();
      items.visit(first, count,
                  [&](const copy_box& part, std::int64_t, std::int64_t from, std::int64_t packed) {
                    ferry::detail::launch_box(here, "test", begin + packed, of.source() + from,
                                              part.packed(side::target));
                  });
      items.visit(
          first, count, [&](const copy_box& part, std::int64_t to, std::int64_t, std::int64_t packed) {
            ferry::detail::launch_box(here, "test", of.sink() + to, static_cast<const float*>(begin) + packed,
                                      part.packed(side::source), true);
          });
      first += count;
    }
    CHECK(of.to == of.expected);
  }
}

TEST_CASE("arrays of one layout are one run, whatever the layout is", "[copy][box]") {
  auto random = generator(121);
  for (std::size_t rank = 1; rank <= 8; ++rank) {
    const auto extents = random_extents(random, rank, 500);
    for (const auto how : {arrangement::row_major, arrangement::column_major}) {
      const problem of(random, arrange(random, extents, how), arrange(random, extents, how));
      CHECK(of.box.ordered(side::target).is_one_run());
      CHECK(of.box.ordered(side::source).is_one_run());
    }
  }
}

TEST_CASE("a device's kernels copy boxes", "[copy][box]") {
  auto random = generator(122);
  using ferry::kernels::box_places;
  for (int tiles = 0; tiles < 40;) {
    auto of = random_problem(random, 1 + random() % 5, 3000);
    const copy_box box = of.box.ordered(side::target);
    const ferry::kernels::copy_strided<float, float> one{of.sink(), of.source(), box_places(box)};
    for (std::int64_t i = 0; i < box.size(); ++i) one(i);
    CHECK(of.to == of.expected);
    const std::size_t a = ferry::detail::transposed_dimension(box), b = box.last();
    if (a == b) continue;
    ++tiles;
    of.to.assign(of.to.size(), -7.0f);
    for (std::int64_t i = 0; i < box.size(); ++i) one(i);
    const auto wanted = of.to;
    of.to.assign(of.to.size(), -7.0f);
    using kernel = ferry::kernels::transpose_tiles<float, float>;
    const std::int64_t tiles_a = (box.extents[a] + 31) / 32, tiles_b = (box.extents[b] + 15) / 16;
    const kernel transpose{of.sink(),
                           of.source(),
                           box.extents[a],
                           box.target[a],
                           box.source[a],
                           box.extents[b],
                           box.target[b],
                           box.source[b],
                           ferry::detail::fast_divisor(tiles_a),
                           ferry::detail::fast_divisor(tiles_b),
                           box_places(box, a, b),
                           false,
                           false};
    const std::int64_t others = box.size() / box.extents[a] / box.extents[b];
    for (std::int64_t i = 0; i < others * tiles_a * tiles_b * kernel::warp; ++i) transpose(i);
    CHECK(of.to == wanted);
  }
}

TEST_CASE("tiles of aligned matrices travel in packets", "[copy][box]") {
  auto random = generator(123);
  using kernel = ferry::kernels::transpose_tiles<float, float>;
  for (const std::int64_t rows : {4, 32, 100})
    for (const std::int64_t columns : {8, 16, 60}) {
      layout shape;
      shape.rank = 2;
      shape.extents = {rows, columns};
      auto source = arrange(random, shape, arrangement::row_major);
      auto sink = arrange(random, shape, arrangement::column_major);
      source.first = sink.first = 0;
      problem of(random, source, sink);
      struct alignas(16) four {
        float value[4];
      };
      std::vector<four> aligned_from(of.from.size() / 4 + 1), aligned_to(of.to.size() / 4 + 1);
      auto* const from = reinterpret_cast<float*>(aligned_from.data());
      auto* const to = reinterpret_cast<float*>(aligned_to.data());
      std::copy(of.from.begin(), of.from.end(), from);
      std::copy(of.to.begin(), of.to.end(), to);
      const copy_box box = of.box.ordered(side::target);
      const std::size_t a = ferry::detail::transposed_dimension(box), b = box.last();
      REQUIRE(a != b);
      const std::int64_t tiles_a = (box.extents[a] + 31) / 32, tiles_b = (box.extents[b] + 15) / 16;
      const kernel transpose{to,
                             from,
                             box.extents[a],
                             box.target[a],
                             box.source[a],
                             box.extents[b],
                             box.target[b],
                             box.source[b],
                             ferry::detail::fast_divisor(tiles_a),
                             ferry::detail::fast_divisor(tiles_b),
                             ferry::kernels::box_places(box, a, b),
                             true,
                             true};
      for (std::int64_t i = 0; i < tiles_a * tiles_b * kernel::warp; ++i) transpose(i);
      CHECK(std::vector<float>(to, to + of.expected.size()) == of.expected);
    }
}

TEST_CASE("boxes of rows become pitched blocks, others do not", "[copy][box]") {
  auto random = generator(124);
  const Kokkos::DefaultHostExecutionSpace host;
  for (int blocks = 0; blocks < 40;) {
    auto of = random_problem(random, 1 + random() % 6, 2000);
    const copy_box box = of.box.ordered(side::target);
    const ferry::detail::box_transfers parts(box, sizeof(float));
    if (!parts.possible) continue;
    ++blocks;
    CHECK(parts.block.target_pitch >= parts.block.row_bytes);
    CHECK(parts.block.source_pitch >= parts.block.row_bytes);
    ferry::detail::transfer_box(host, "test", of.sink(), of.source(), box);
    CHECK(of.to == of.expected);
  }
  copy_box windows;  // neighbouring rows overlap in the source
  windows.append(4, 10, 1);
  windows.append(10, 1, 1);
  CHECK_FALSE(ferry::detail::box_transfers(windows, 4).possible);
  copy_box backwards;
  backwards.append(4, -10, 10);
  backwards.append(10, 1, 1);
  CHECK_FALSE(ferry::detail::box_transfers(backwards, 4).possible);
}

}  // namespace ferry_test::copy_box_test
