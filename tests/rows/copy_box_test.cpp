// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_staged.hpp>

/// The parts of a copy, each against plain loops. Kernels of a device are called here element by element.
namespace ferry_test::copy_box_test {

using ferry::detail::copy_box;
using side = copy_box::side;

/// A box and what it must do.
struct problem {
  copy_box box;
  std::vector<float> source_memory, sink_memory, expected;
  std::int64_t from_first, to_first;

  problem(std::mt19937_64& random, const layout& source, const layout& sink)
      : source_memory(values<float>(random, static_cast<std::size_t>(source.size))),
        sink_memory(values<float>(random, static_cast<std::size_t>(sink.size))),
        expected(sink_memory),
        from_first(source.first),
        to_first(sink.first) {
    for (std::size_t d = 0; d < source.rank; ++d)
      box.append(source.extents[d], sink.strides[d], source.strides[d]);
    const auto source_places = source.places(), sink_places = sink.places();
    for (std::size_t i = 0; i < source_places.size(); ++i)
      expected[sink_places[i]] = source_memory[source_places[i]];
  }
  [[nodiscard]] const float* source() const { return source_memory.data() + from_first; }
  [[nodiscard]] float* sink() { return sink_memory.data() + to_first; }
};

problem random_problem(std::mt19937_64& random, std::size_t rank, std::int64_t elements) {
  const auto extents = random_extents(random, rank, elements);
  const auto source = arrange(random, extents, arrangements[random() % std::size(arrangements)]);
  const auto sink = arrange(random, extents, arrangements[random() % std::size(arrangements)]);
  return {random, source, sink};
}

TEST_CASE("a box keeps its elements, however it is ordered, split or packed", "[copy][box]") {
  auto random = generator(120);
  for (int repeat = 0; repeat < 300; ++repeat) {
    auto copy = random_problem(random, 1 + random() % 8, 300);
    const auto lead = repeat % 2 == 0 ? side::target : side::source;
    const copy_box box = copy.box.ordered(lead);
    REQUIRE(box.size() == copy.box.size());
    for (std::size_t d = 1; d <= box.last(); ++d)
      CHECK(std::abs(box.strides(lead)[d - 1]) >= std::abs(box.strides(lead)[d]));
    // Packed and unpacked, in items: both halves of a copy through slots.
    const ferry::detail::box_items items(box, 1 + static_cast<std::int64_t>(random() % 40));
    CHECK(items.count() * items.item() == box.size());
    std::vector<float> slot(static_cast<std::size_t>(box.size()));
    const ferry::detail::caller_thread host;
    for (std::int64_t first = 0; first < items.count();) {
      const auto count =
          std::min<std::int64_t>(items.count() - first, 1 + static_cast<std::int64_t>(random() % 9));
      float* const begin = slot.data() + first * items.item();
      items.visit(first, count,
                  [&](const copy_box& part, std::int64_t, std::int64_t offset, std::int64_t packed) {
                    ferry::detail::launch_box(host, "test", begin + packed, copy.source() + offset,
                                              part.packed(side::target));
                  });
      items.visit(first, count,
                  [&](const copy_box& part, std::int64_t offset, std::int64_t, std::int64_t packed) {
                    ferry::detail::launch_box(host, "test", copy.sink() + offset,
                                              static_cast<const float*>(begin) + packed,
                                              part.packed(side::source), true);
                  });
      first += count;
    }
    CHECK(copy.sink_memory == copy.expected);
  }
}

TEST_CASE("arrays of one layout are one run, whatever the layout is", "[copy][box]") {
  auto random = generator(121);
  for (std::size_t rank = 1; rank <= 8; ++rank) {
    const auto extents = random_extents(random, rank, 500);
    for (const auto how : {arrangement::row_major, arrangement::column_major}) {
      const problem copy(random, arrange(random, extents, how), arrange(random, extents, how));
      CHECK(copy.box.ordered(side::target).is_one_run());
      CHECK(copy.box.ordered(side::source).is_one_run());
    }
  }
}

TEST_CASE("a device's kernels copy boxes", "[copy][box]") {
  auto random = generator(122);
  using ferry::kernels::box_offsets;
  for (int tiles = 0; tiles < 40;) {
    auto copy = random_problem(random, 1 + random() % 5, 3000);
    const copy_box box = copy.box.ordered(side::target);
    const ferry::kernels::copy_strided<float, float> copy_element{copy.sink(), copy.source(),
                                                                  box_offsets(box)};
    for (std::int64_t i = 0; i < box.size(); ++i) copy_element(i);
    CHECK(copy.sink_memory == copy.expected);
    const std::size_t a = ferry::detail::transposed_dimension(box), b = box.last();
    if (a == b) continue;
    ++tiles;
    copy.sink_memory.assign(copy.sink_memory.size(), -7.0f);
    for (std::int64_t i = 0; i < box.size(); ++i) copy_element(i);
    const auto expected = copy.sink_memory;
    copy.sink_memory.assign(copy.sink_memory.size(), -7.0f);
    using kernel = ferry::kernels::transpose_tiles<float, float>;
    const std::int64_t tiles_a = (box.extents[a] + 31) / 32, tiles_b = (box.extents[b] + 15) / 16;
    const kernel transpose{copy.sink(),
                           copy.source(),
                           box.extents[a],
                           box.target[a],
                           box.source[a],
                           box.extents[b],
                           box.target[b],
                           box.source[b],
                           ferry::detail::fast_divisor(tiles_a),
                           ferry::detail::fast_divisor(tiles_b),
                           box_offsets(box, a, b),
                           false,
                           false};
    const std::int64_t planes = box.size() / box.extents[a] / box.extents[b];
    for (std::int64_t i = 0; i < planes * tiles_a * tiles_b * kernel::warp; ++i) transpose(i);
    CHECK(copy.sink_memory == expected);
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
      problem copy(random, source, sink);
      struct alignas(16) four {
        float value[4];
      };
      std::vector<four> aligned_from(copy.source_memory.size() / 4 + 1),
          aligned_to(copy.sink_memory.size() / 4 + 1);
      auto* const aligned_source = reinterpret_cast<float*>(aligned_from.data());
      auto* const aligned_target = reinterpret_cast<float*>(aligned_to.data());
      std::copy(copy.source_memory.begin(), copy.source_memory.end(), aligned_source);
      std::copy(copy.sink_memory.begin(), copy.sink_memory.end(), aligned_target);
      const copy_box box = copy.box.ordered(side::target);
      const std::size_t a = ferry::detail::transposed_dimension(box), b = box.last();
      REQUIRE(a != b);
      const std::int64_t tiles_a = (box.extents[a] + 31) / 32, tiles_b = (box.extents[b] + 15) / 16;
      const kernel transpose{aligned_target,
                             aligned_source,
                             box.extents[a],
                             box.target[a],
                             box.source[a],
                             box.extents[b],
                             box.target[b],
                             box.source[b],
                             ferry::detail::fast_divisor(tiles_a),
                             ferry::detail::fast_divisor(tiles_b),
                             ferry::kernels::box_offsets(box, a, b),
                             true,
                             true};
      for (std::int64_t i = 0; i < tiles_a * tiles_b * kernel::warp; ++i) transpose(i);
      CHECK(std::vector<float>(aligned_target, aligned_target + copy.expected.size()) == copy.expected);
    }
}

TEST_CASE("boxes of rows become pitched blocks, others do not", "[copy][box]") {
  auto random = generator(124);
  const Kokkos::DefaultHostExecutionSpace host;
  for (int blocks = 0; blocks < 40;) {
    auto copy = random_problem(random, 1 + random() % 6, 2000);
    const copy_box box = copy.box.ordered(side::target);
    const ferry::detail::box_transfers parts(box, sizeof(float));
    if (!parts.possible) continue;
    ++blocks;
    CHECK(parts.block.target_pitch >= parts.block.row_bytes);
    CHECK(parts.block.source_pitch >= parts.block.row_bytes);
    ferry::detail::transfer_box(host, "test", copy.sink(), copy.source(), box);
    CHECK(copy.sink_memory == copy.expected);
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
