// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/quantized.hpp>

namespace ferry_test::copy_rows_test {
namespace {

/// target[target_rows[p]] = source[source_rows[p]], one position after the other; a negative row is left out.
template <class To, class From>
std::vector<To> moved(std::vector<To> target, const std::vector<From>& source, std::size_t width,
                      const std::vector<std::int64_t>& source_rows,
                      const std::vector<std::int64_t>& target_rows) {
  for (std::size_t p = 0; p < source_rows.size(); ++p) {
    if (source_rows[p] < 0 || target_rows[p] < 0) continue;
    for (std::size_t c = 0; c < width; ++c) {
      const From& element = source[static_cast<std::size_t>(source_rows[p]) * width + c];
      if constexpr (std::is_same_v<To, From>)
        target[static_cast<std::size_t>(target_rows[p]) * width + c] = element;
      else
        target[static_cast<std::size_t>(target_rows[p]) * width + c] = ferry::convert<To>(element);
    }
  }
  return target;
}

template <class From, class To, class FromSpace, class ToSpace, class Path>
void move_by(Path path, std::size_t count, std::size_t width) {
  CAPTURE(FromSpace::name, ToSpace::name, path.name, count, width);
  auto random = generator(count * 31 + width);
  const std::size_t rows = 700, other_rows = 900;
  const auto content = values<From>(random, rows * width);
  const auto poison = values<To>(random, other_rows * width);
  const auto source = make<FromSpace>("from", rows, width, content);
  auto target = make<ToSpace>("to", other_rows, width, poison);
  const auto reads = indices<std::int64_t>(random, count, rows);
  const auto writes = indices<std::int64_t>(random, count, other_rows);
  ferry::copy_rows(exec_space(), source, reads, target, writes, path).wait();
  CHECK(same_bits(take(target), moved<To>(poison, content, width, reads, writes)));
}

}  // namespace

// Every pair with rows of one more kind in turn: a row is bytes, or converted, wherever its table is.
using space_pairs = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("copy_rows moves rows between every two spaces", "[copy_rows]", space_pairs) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  for (const std::size_t count : {0u, 1u, 37u, 640u})
    move_by<float, float, from, to>(ferry::path::automatic{}, count, 33);
  constexpr int turn = (4 + place_of<from> - place_of<to>) % 4;
  if constexpr (turn == 0) move_by<std::byte, std::byte, from, to>(ferry::path::automatic{}, 300, 7);
  if constexpr (turn == 1) move_by<float, double, from, to>(ferry::path::automatic{}, 300, 5);
  if constexpr (turn == 2) move_by<double, double, from, to>(ferry::path::automatic{}, 40, 4096);
  if constexpr (turn == 3) move_by<double, ferry::half_t, from, to>(ferry::path::automatic{}, 300, 6);
  if constexpr (staged_compiles<from, to>) move_by<float, float, from, to>(ferry::path::staged{}, 300, 129);
  constexpr bool by_engines = place_of<from> < 2 && place_of<to> < 2;
  if constexpr (by_engines) move_by<float, float, from, to>(ferry::path::copy_engine{}, 300, 129);
}

TEMPLATE_TEST_CASE("copy_rows takes rows of every integer type, plans and ranges", "[copy_rows]",
                   std::int32_t, std::uint32_t, std::int64_t, std::uint64_t) {
  const exec_space exec;
  auto random = generator(5);
  const std::size_t rows = 90, width = 8, count = 64;
  const auto content = values<float>(random, rows * width), poison = values<float>(random, rows * width);
  const auto source = make<ferry::device_space>("from", rows, width, content);
  const auto reads = indices<std::int64_t>(random, count, rows),
             writes = indices<std::int64_t>(random, count, rows);
  std::vector<std::int64_t> range(count);
  std::iota(range.begin(), range.end(), 3);
  const auto as_index = [](const std::vector<std::int64_t>& list) {
    return make<ferry::device_space>("rows", std::vector<TestType>(list.begin(), list.end()));
  };
  const auto run = [&](const auto& read, const auto& written, const auto& read_rows,
                       const auto& written_rows) {
    auto target = make<ferry::device_space>("to", rows, width, poison);
    ferry::copy_rows(exec, source, read, target, written).wait();
    CHECK(take(target) == moved(poison, content, width, read_rows, written_rows));
  };
  const auto read_list = as_index(reads), written_list = as_index(writes);
  const auto read_plan = ferry::make_plan(exec, read_list, rows),
             written_plan = ferry::make_plan(exec, written_list, rows);
  run(read_list, written_list, reads, writes);
  run(read_plan, written_plan, reads, writes);
  if constexpr (sizeof(TestType) == 4 && std::is_signed_v<TestType>) {
    const ferry::row_range neighbours{3, static_cast<std::int64_t>(count)};
    run(read_plan, written_list, reads, writes);
    run(read_list, written_plan, reads, writes);
    run(neighbours, written_list, range, writes);
    run(read_list, neighbours, reads, range);
    run(neighbours, neighbours, range, range);
  }
}

TEST_CASE("copy_rows keeps one of several positions that write a row", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(7);
  const std::size_t rows = 50, width = 6, count = 333;
  const auto content = values<float>(random, rows * width), poison = values<float>(random, rows * width);
  const auto source = make<ferry::device_space>("from", rows, width, content);
  const auto reads = indices<std::int64_t>(random, count, rows),
             writes = indices<std::int64_t>(random, count, rows);
  auto target = make<ferry::device_space>("to", rows, width, poison);
  ferry::copy_rows(exec, source, reads, target, writes, ferry::duplicates::first{}).wait();
  const std::vector<std::int64_t> last_reads(reads.rbegin(), reads.rend()),
      last_writes(writes.rbegin(), writes.rend());
  CHECK(take(target) == moved(poison, content, width, last_reads, last_writes));

  auto refused = make<ferry::device_space>("refused", rows, width, poison);
  CHECK_THROWS_MATCHES(
      ferry::copy_rows(exec, source, reads, refused, writes, ferry::duplicates::reject{}).wait(),
      ferry::invalid_argument, MessageMatches(ContainsSubstring("named more than once")));
  CHECK(take(refused) == poison);
  const auto distinct = unique_indices<std::int64_t>(random, 40, rows);
  const std::vector<std::int64_t> few(reads.begin(), reads.begin() + 40);
  ferry::copy_rows(exec, source, few, refused, distinct, ferry::duplicates::reject{}).wait();
  CHECK(take(refused) == moved(poison, content, width, few, distinct));
  auto unchecked = make<ferry::device_space>("unchecked", rows, width, poison);
  ferry::copy_rows(exec, source, few, unchecked, distinct, ferry::duplicates::assume_unique{}).wait();
  CHECK(take(unchecked) == take(refused));
}

TEST_CASE("copy_rows checks the rows of each side", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(9);
  const std::size_t rows = 20, width = 5;
  const auto content = values<float>(random, rows * width), poison = values<float>(random, 30 * width);
  const auto source = make<ferry::device_space>("pool", rows, width, content);
  const std::vector<std::int64_t> good{4, 9, 1}, bad{4, 20, -1};
  const auto fails = [&](const auto& read, const auto& written, const std::string& text, auto... policies) {
    auto target = make<ferry::device_space>("shelf", 30, width, poison);
    CHECK_THROWS_MATCHES(ferry::copy_rows(exec, source, read, target, written, policies...).wait(),
                         ferry::out_of_range, MessageMatches(ContainsSubstring(text)));
    CHECK(take(target) == poison);
  };
  fails(
      bad, good,
      "2 row numbers of 3 pairs are outside of their tables; the first is source row 20 at position 1, outside of 'pool' [20 x 5]");
  fails(good, std::vector<std::int64_t>{1, 2, 30},
        "the first is target row 30 at position 2, outside of 'shelf' [30 x 5]");
  fails(good, std::vector<int>{1, 2, 30}, "target row 30", ferry::duplicates::assume_unique{});
  fails(ferry::make_plan(exec, bad, rows), good, "source row 20 at position 1");
  fails(good, ferry::make_plan(exec, std::vector<int>{-7, 1, 2}, 30), "target row -7 at position 0");
  fails(good, std::vector<std::int64_t>{99, 2, 2}, "target row 99",
        ferry::source_bounds<ferry::bounds::skip>{});
  fails(ferry::row_range{18, 3}, good, "the source rows from 18 on, 3 in all, are outside of 'pool'");
  fails(good, ferry::row_range{-1, 3}, "the target rows from -1 on");

  const auto left_out = [&](auto... policies) {
    auto target = make<ferry::device_space>("shelf", 30, width, poison);
    ferry::copy_rows(exec, source, bad, target, std::vector<int>{5, 6, 7}, policies...).wait();
    return take(target);
  };
  CHECK(left_out(ferry::bounds::skip{}) == moved(poison, content, width, {4, -1, -1}, {5, 6, 7}));
  CHECK(left_out(ferry::source_bounds<ferry::bounds::clamp>{}) ==
        moved(poison, content, width, {4, 19, 0}, {5, 6, 7}));
  CHECK(left_out(ferry::bounds::check{}, ferry::source_bounds<ferry::bounds::skip>{}) ==
        moved(poison, content, width, {4, -1, -1}, {5, 6, 7}));
}

TEST_CASE("copy_rows refuses what does not fit", "[copy_rows]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> a("a", 10, 4), b("b", 10, 5), c("c", 10, 2, 2), d("d", 10, 2, 3);
  const std::array<int, 2> two{0, 1};
  const std::array<int, 3> three{0, 1, 2};
  const auto refuses = [&](const auto& table, const auto& read, auto& sink, const auto& written,
                           const std::string& text) {
    CHECK_THROWS_MATCHES(ferry::copy_rows(exec, table, read, sink, written).wait(), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(text)));
  };
  refuses(a, two, b, two,
          "rows of 'a' [10 x 4] in device_space and of 'b' [10 x 5] in device_space have different extents");
  refuses(c, two, d, two, "different extents");
  refuses(a, two, c, three, "2 rows of 'a' [10 x 4] in device_space can't become 3 rows of 'c' [10 x 2 x 2]");
  refuses(a, two, a, two, "share memory");
  CHECK_NOTHROW(ferry::copy_rows(exec, a, two, c, two).wait());  // rows of as many elements side by side
  auto half = a.first(5);
  CHECK_NOTHROW(ferry::copy_rows(exec, a.rows_between(5, 10), two, half, two).wait());
  CHECK_THROWS_MATCHES(static_cast<void>(ferry::rows_along<2>(a)), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'a' [10 x 4] in device_space has no dimension 2")));
}

TEST_CASE("copy_rows within one pool reads all rows before it writes", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(11);
  const std::size_t rows = 300, width = 19, count = 250;
  const auto content = values<float>(random, rows * width);
  auto pool = make<ferry::device_space>("pool", rows, width, content);
  const auto reads = indices<std::int64_t>(random, count, rows),
             writes = indices<std::int64_t>(random, count, rows);
  ferry::copy_rows(exec, pool, reads, pool, writes, ferry::overlap::buffer{}).wait();
  CHECK(take(pool) == moved(content, content, width, reads, writes));
}

TEST_CASE("copy_rows moves rows of many tables at once", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(13);
  const std::size_t rows = 40, width = 24, count = 17;
  for (const std::size_t tables : {1u, 2u, 65u}) {
    std::vector<ferry::tensor<ferry::half_t, ferry::device_space>> layers;
    std::vector<ferry::tensor<ferry::half_t, ferry::pinned_space>> shelves;
    std::vector<std::vector<ferry::half_t>> content, poison;
    for (std::size_t t = 0; t < tables; ++t) {
      content.push_back(values<ferry::half_t>(random, rows * width));
      poison.push_back(values<ferry::half_t>(random, 2 * rows * width));
      layers.push_back(make<ferry::device_space>("layer", rows, width, content[t]));
      shelves.push_back(make<ferry::pinned_space>("shelf", 2 * rows, width, poison[t]));
    }
    const auto reads = indices<std::int64_t>(random, count, rows),
               writes = indices<std::int64_t>(random, count, 2 * rows);
    ferry::copy_rows(exec, ferry::for_each_table(layers), reads, ferry::for_each_table(shelves), writes)
        .wait();
    for (std::size_t t = 0; t < tables; ++t) {
      const auto expected = moved(poison[t], content[t], width, reads, writes);
      const auto result = take(shelves[t]);
      CHECK(std::memcmp(result.data(), expected.data(), result.size() * sizeof(ferry::half_t)) == 0);
    }
    shelves.pop_back();
    if (tables > 1)
      CHECK_THROWS_MATCHES(
          ferry::copy_rows(exec, ferry::for_each_table(layers), reads, ferry::for_each_table(shelves), writes)
              .wait(),
          ferry::invalid_argument, MessageMatches(ContainsSubstring("tables are read and")));
  }
}

namespace {

/// A cache of dimensions layers, blocks, heads, tokens and columns, in one of the orders of servers.
struct cache_order {
  const char* name;
  std::array<std::size_t, 5> order;  ///< the dimension at each place of the memory
};

/// A View of layers, blocks, heads, tokens and columns over padded memory of an order.
template <class Space>
struct cache {
  using kokkos_space = ferry::detail::kokkos_space_t<Space>;
  using view =
      Kokkos::View<float*****, Kokkos::LayoutStride, kokkos_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  std::array<std::size_t, 5> extents, strides{};
  ferry::tensor<float, Space> memory;

  cache(const cache_order& order, const std::array<std::size_t, 5>& sizes, std::size_t padding)
      : extents(sizes) {
    std::size_t stride = 1;
    for (std::size_t place = 5; place-- > 0;) {
      strides[order.order[place]] = stride;
      stride = stride * sizes[order.order[place]] + (place == 2 ? padding : 0);
    }
    memory = ferry::tensor<float, Space>("cache", stride);
  }
  [[nodiscard]] view get() {
    return view(memory.data(),
                Kokkos::LayoutStride(extents[0], strides[0], extents[1], strides[1], extents[2], strides[2],
                                     extents[3], strides[3], extents[4], strides[4]));
  }
};

}  // namespace

/// Moves random blocks between caches of every pair of orders, whose columns are `columns` floats.
template <class Path>
void move_between_orders(Path path, std::size_t columns) {
  const exec_space exec;
  auto random = generator(17 + columns);
  // layers 0, blocks 1, heads 2, tokens 3, columns 4
  const cache_order orders[] = {{"LBHNC", {0, 1, 2, 3, 4}}, {"LBNHC", {0, 1, 3, 2, 4}},
                                {"BLHNC", {1, 0, 2, 3, 4}}, {"BLNHC", {1, 0, 3, 2, 4}},
                                {"LHBNC", {0, 2, 1, 3, 4}}, {"BHLNC", {1, 2, 0, 3, 4}}};
  for (const auto& source_order : orders)
    for (const auto& target_order : orders) {
      CAPTURE(source_order.name, target_order.name);
      const std::array<std::size_t, 5> sizes{3, 9, 2, 4, columns}, other_sizes{3, 12, 2, 4, columns};
      cache<ferry::device_space> source(source_order, sizes, 8);
      cache<ferry::pinned_space> target(target_order, other_sizes, 4);
      const auto content = values<float>(random, source.memory.size());
      auto expected = values<float>(random, target.memory.size());
      put(source.memory, content);
      put(target.memory, expected);
      const auto reads = indices<std::int64_t>(random, 7, 9),
                 writes = unique_indices<std::int64_t>(random, 7, 12);
      const auto source_view = source.get();
      auto target_view = target.get();
      auto blocks = ferry::rows_along<1>(target_view);
      ferry::copy_rows(exec, ferry::rows_along<1>(source_view), reads, blocks, writes, path).wait();
      for (std::size_t p = 0; p < reads.size(); ++p)
        for (std::size_t l = 0; l < 3; ++l)
          for (std::size_t h = 0; h < 2; ++h)
            for (std::size_t n = 0; n < 4; ++n)
              for (std::size_t c = 0; c < columns; ++c) {
                const auto place = [&](const auto& side, std::int64_t block) {
                  return l * side.strides[0] + static_cast<std::size_t>(block) * side.strides[1] +
                         h * side.strides[2] + n * side.strides[3] + c * side.strides[4];
                };
                expected[place(target, writes[p])] = content[place(source, reads[p])];
              }
      CHECK(take(target.memory) == expected);
    }
}

TEST_CASE("rows along a dimension travel between the orders of servers", "[copy_rows]") {
  move_between_orders(ferry::path::automatic{}, 6);
  // Views in the memory of a host are pageable.
  if constexpr (!ferry::detail::is_host_exec<exec_space>) {
    move_between_orders(ferry::path::copy_engine{}, 6);
    move_between_orders(ferry::path::copy_engine{}, 160);  // pieces of pitched transfers
  }
}

TEST_CASE("interleaved rows of one allocation do not share memory", "[copy_rows]") {
  const exec_space exec;
  Kokkos::View<float****, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<ferry::device_space>> pool(
      "pool", 4, 2, 8, 3);
  const auto keys = Kokkos::subview(pool, Kokkos::ALL, 0, Kokkos::ALL, Kokkos::ALL);
  const auto all_values = Kokkos::subview(pool, Kokkos::ALL, 1, Kokkos::ALL, Kokkos::ALL);
  Kokkos::deep_copy(pool, 1.0f);
  auto blocks = ferry::rows_along<1>(all_values);
  CHECK_NOTHROW(ferry::copy_rows(exec, ferry::rows_along<1>(keys), ferry::row_range{0, 8}, blocks,
                                 ferry::row_range{0, 8})
                    .wait());
  CHECK_THROWS_AS(ferry::copy_rows(exec, ferry::rows_along<1>(all_values), ferry::row_range{0, 4}, blocks,
                                   ferry::row_range{4, 4})
                      .wait(),
                  ferry::invalid_argument);
}

TEST_CASE("copy_rows moves quantized rows as they are", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(19);
  using table = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::device_space>;
  table source("from", 30, 64), target("to", 20, 64);
  const auto numbers = make<ferry::device_space>("numbers", 30, 64, values<float>(random, 30 * 64));
  const auto old_numbers = make<ferry::device_space>("old", 20, 64, values<float>(random, 20 * 64));
  ferry::quantize(exec, numbers, source).wait();
  ferry::quantize(exec, old_numbers, target).wait();
  const auto reads = indices<std::int64_t>(random, 12, 30), writes = indices<std::int64_t>(random, 12, 20);
  ferry::tensor<float, ferry::device_space> before("before", 30, 64), old("old", 20, 64),
      after("after", 20, 64);
  ferry::dequantize(exec, source, before).wait();
  ferry::dequantize(exec, target, old).wait();
  ferry::copy_rows(exec, source, reads, target, writes).wait();
  ferry::dequantize(exec, target, after).wait();
  CHECK(take(after) == moved(take(old), take(before), 64, reads, writes));
}

TEST_CASE("a position without a row to read leaves the row to another position", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(23);
  const std::size_t rows = 20, width = 5;
  const auto content = values<float>(random, rows * width), poison = values<float>(random, rows * width);
  const std::vector<std::int64_t> reads{-1, 3, 4, 77, -1, 8, 9, -1, 11}, writes{5, 5, 5, 5, 5, 7, -1, 8, 9},
      firsts{-1, 3, -1, -1, -1, 8, -1, -1, 11};
  const auto plan = ferry::make_plan(exec, reads, rows, ferry::bounds::skip{});
  const auto run = [&]<class Space>(Space, const auto& read, auto... policies) {
    const auto source = make<Space>("from", rows, width, content);
    auto target = make<Space>("to", rows, width, poison);
    ferry::copy_rows(exec, source, read, target, writes, policies...).wait();
    return take(target);
  };
  const auto without_77 = [](std::vector<std::int64_t> list) {
    for (auto& row : list) row = row == 77 ? -1 : row;
    return list;
  };
  const auto last = moved(poison, content, width, without_77(reads), writes);
  const auto in_space = [&](auto space) {
    CHECK(run(space, reads, ferry::bounds::skip{}) == last);
    CHECK(run(space, reads, ferry::bounds::skip{}, ferry::overlap::buffer{}) == last);
    CHECK(run(space, plan, ferry::target_bounds<ferry::bounds::skip>{}) == last);
    CHECK(run(space, reads, ferry::bounds::skip{}, ferry::duplicates::first{}) ==
          moved(poison, content, width, firsts, writes));
  };
  in_space(ferry::device_space{});
  in_space(ferry::pageable_space{});

  const auto source = make<ferry::device_space>("from", rows, width, content);
  auto target = make<ferry::device_space>("to", rows, width, poison);
  const std::vector<std::int64_t> one_writer{-1, 3, -1, 4}, twice{6, 6, 6, 7}, two_writers{-1, 3, 2, 4};
  ferry::copy_rows(exec, source, one_writer, target, twice, ferry::bounds::skip{},
                   ferry::duplicates::reject{})
      .wait();
  CHECK(take(target) == moved(poison, content, width, one_writer, twice));
  CHECK_THROWS_MATCHES(ferry::copy_rows(exec, source, two_writers, target, twice, ferry::bounds::skip{},
                                        ferry::duplicates::reject{})
                           .wait(),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring("1 row of 'to'")));
}

TEST_CASE("copy_rows takes rows without elements and tables without rows", "[copy_rows]") {
  const exec_space exec;
  const std::vector<int> list{1, 0, 1}, none;
  ferry::tensor<float, ferry::device_space> a("a", 10, 0), b("b", 5, 0), c("c", 4, 0, 3), d("d", 6, 0, 3),
      e("e", 0, 4), f("f", 3, 4);
  CHECK_NOTHROW(ferry::copy_rows(exec, a, list, b, list).wait());
  CHECK_NOTHROW(ferry::copy_rows(exec, c, list, d, list, ferry::overlap::buffer{}).wait());
  CHECK_THROWS_AS(ferry::copy_rows(exec, a, std::vector<int>{10}, b, std::vector<int>{0}).wait(),
                  ferry::out_of_range);
  CHECK_NOTHROW(ferry::copy_rows(exec, e, none, f, none).wait());
  CHECK_NOTHROW(ferry::copy_rows(exec, e, list, f, list, ferry::bounds::skip{}).wait());
  CHECK_THROWS_AS(ferry::copy_rows(exec, e, list, f, list).wait(), ferry::out_of_range);
  CHECK_THROWS_AS(ferry::copy_rows(exec, f, list, e, list, ferry::bounds::clamp{}).wait(),
                  ferry::invalid_argument);
}

TEST_CASE("copy_rows finds tables that share memory", "[copy_rows]") {
  const exec_space exec;
  const std::vector<int> list{0, 1};
  using strided =
      Kokkos::View<float**, Kokkos::LayoutStride, ferry::detail::kokkos_space_t<ferry::device_space>>;
  ferry::tensor<float, ferry::device_space> memory("memory", 64);
  const auto view = [&](std::size_t begin, std::size_t rows, std::size_t row_stride, std::size_t columns,
                        std::size_t stride) {
    return strided(memory.data() + begin, Kokkos::LayoutStride(rows, row_stride, columns, stride));
  };
  const auto refuses = [&](const strided& source, const strided& target) {
    CHECK_THROWS_MATCHES(ferry::copy_rows(exec, source, list, target, list).wait(), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring("share memory")));
  };
  refuses(view(0, 5, 1, 4, 1), view(6, 2, 4, 4, 1));    // windows, the last of which has element 7
  refuses(view(0, 5, 1, 4, 2), view(10, 2, 40, 4, 2));  // windows with gaps
  refuses(view(0, 5, 0, 4, 2), view(2, 2, 10, 4, 2));   // one row for all
  CHECK_NOTHROW(ferry::copy_rows(exec, view(0, 5, 1, 4, 1), list, view(8, 2, 4, 4, 1), list).wait());
  refuses(view(20, 2, 0, 4, 1), view(0, 2, 2, 4, 1));  // windows can't be written

  ferry::tensor<float, ferry::device_space> a("a", 4, 3), b("b", 4, 3), c("c", 4, 3);
  CHECK_THROWS_MATCHES(ferry::copy_rows(exec, ferry::for_each_table(a, b), list, ferry::for_each_table(c, c),
                                        list, ferry::overlap::buffer{})
                           .wait(),
                       ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("which are both written, share memory")));
  CHECK_THROWS_MATCHES(
      ferry::copy_rows(exec, ferry::for_each_table(a, b), list, ferry::for_each_table(c, a), list).wait(),
      ferry::invalid_argument, MessageMatches(ContainsSubstring("overlap::buffer")));
  CHECK_NOTHROW(
      ferry::copy_rows(exec, ferry::for_each_table(a, a), list, ferry::for_each_table(b, c), list).wait());
}

TEST_CASE("overlap::buffer serves every space, lists of tables and conversions", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(29);
  const std::size_t rows = 60, width = 9, count = 41;
  const auto reads = indices<std::int64_t>(random, count, rows),
             writes = indices<std::int64_t>(random, count, rows);
  const auto first = values<float>(random, rows * width), second = values<float>(random, rows * width);
  const auto in_space = [&]<class Space>(Space) {
    auto a = make<Space>("a", rows, width, first), b = make<Space>("b", rows, width, second);
    ferry::copy_rows(exec, ferry::for_each_table(a, b), reads, ferry::for_each_table(b, a), writes,
                     ferry::overlap::buffer{})
        .wait();
    CHECK(take(a) == moved(first, second, width, reads, writes));
    CHECK(take(b) == moved(second, first, width, reads, writes));
    auto doubles = make<Space>("doubles", rows, width, std::vector<double>(rows * width, 2.5));
    ferry::copy_rows(exec, a, reads, doubles, writes, ferry::overlap::buffer{}).wait();
    CHECK(take(doubles) == moved(std::vector<double>(rows * width, 2.5), take(a), width, reads, writes));
  };
  in_space(ferry::device_space{});
  in_space(ferry::pinned_space{});
  in_space(ferry::pageable_space{});
}

TEST_CASE("a vector of views is a list of tables", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(37);
  const std::size_t rows = 12, width = 4;
  const auto content = values<float>(random, 2 * rows * width);
  const auto pool = make<ferry::device_space>("pool", 2 * rows, width, content);
  auto shelf = make<ferry::device_space>("shelf", 2 * rows, width, std::vector<float>(content.size()));
  using view = ferry::tensor_view<const float, ferry::device_space>;
  using sink = ferry::tensor_view<float, ferry::device_space>;
  const std::vector<view> sources{{pool.data(), rows, width}, {pool.data() + rows * width, rows, width}};
  const std::vector<sink> targets{{shelf.data() + rows * width, rows, width}, {shelf.data(), rows, width}};
  const ferry::row_range every_row{0, static_cast<std::int64_t>(rows)};
  ferry::copy_rows(exec, ferry::for_each_table(sources), every_row, ferry::for_each_table(targets), every_row)
      .wait();
  auto expected = content;
  std::rotate(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(rows * width), expected.end());
  CHECK(take(shelf) == expected);
}

TEST_CASE("copy_rows takes the bounds of a plan", "[copy_rows]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> a("a", 8, 4), b("b", 8, 4);
  const std::vector<int> list{1, 9, 3}, good{0, 1, 2};
  const auto plan = ferry::make_plan(exec, list, 8);
  const auto refuses = [&](const auto& read, const auto& written, auto policy) {
    CHECK_THROWS_MATCHES(ferry::copy_rows(exec, a, read, b, written, policy).wait(), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(
                             "made with bounds::check, the verb can't change that to bounds::skip")));
  };
  refuses(plan, good, ferry::bounds::skip{});
  refuses(good, plan, ferry::bounds::skip{});
  refuses(plan, good, ferry::source_bounds<ferry::bounds::skip>{});
  refuses(good, plan, ferry::target_bounds<ferry::bounds::skip>{});
  CHECK_THROWS_AS(
      ferry::copy_rows(exec, a, plan, b, good, ferry::target_bounds<ferry::bounds::skip>{}).wait(),
      ferry::out_of_range);
  const auto skipping = ferry::make_plan(exec, list, 8, ferry::bounds::skip{});
  CHECK_NOTHROW(ferry::copy_rows(exec, a, skipping, b, skipping).wait());  // one plan for both sides
  const std::vector<std::uint64_t> huge{~std::uint64_t{0}, 1, 2};
  CHECK_THROWS_MATCHES(ferry::copy_rows(exec, a, huge, b, good).wait(), ferry::out_of_range,
                       MessageMatches(ContainsSubstring("source row 18446744073709551615 at position 0")));
  CHECK_THROWS_MATCHES(ferry::copy_rows(exec, a, ferry::make_plan(exec, huge, 8), b, good).wait(),
                       ferry::out_of_range,
                       MessageMatches(ContainsSubstring("source row 18446744073709551615 at position 0")));
}

TEST_CASE("copy_rows reports the bytes of all tables", "[copy_rows]") {
  const exec_space exec;
  using table = ferry::tensor<float, ferry::device_space>;
  const table a("a", 50, 512), b("b", 50, 512);
  ferry::tensor<float, ferry::pageable_space> c("c", 50, 512), d("d", 50, 512);
  std::vector<int> list(50);
  std::iota(list.begin(), list.end(), 0);
  std::size_t last = 0, total = 0;
  bool ascends = true;
  const ferry::copy_progress watch([&](const ferry::copied& now) {
    ascends = ascends && now.bytes_done >= last;
    last = now.bytes_done;
    total = now.bytes;
  });
  ferry::copy_rows(exec, ferry::for_each_table(a, b), list, ferry::for_each_table(c, d), list).wait();
  CHECK(ascends);
  CHECK(last == 2 * 50 * 512 * sizeof(float));
  CHECK(total == last);
}

TEST_CASE("copy_rows moves arrays of one to eight dimensions", "[copy_rows]") {
  const exec_space exec;
  auto random = generator(31);
  const std::vector<int> reads{5, 0, 3}, writes{1, 4, 2};
  const std::vector<std::int64_t> read_rows(reads.begin(), reads.end()),
      written(writes.begin(), writes.end());
  const auto line = values<double>(random, 7), old_line = values<double>(random, 6);
  const auto source = make<ferry::device_space>("line", line);
  auto target = make<ferry::device_space>("other", old_line);
  ferry::copy_rows(exec, source, reads, target, writes).wait();
  CHECK(take(target) == moved(old_line, line, 1, read_rows, written));

  // The dimensions of a row, from the outermost on, lie in the reverse order on one side.
  using wide = Kokkos::View<std::int16_t********, Kokkos::LayoutStride,
                            ferry::detail::kokkos_space_t<ferry::device_space>>;
  const std::size_t extents[] = {6, 2, 3, 2, 1, 2, 3, 2}, size = 6 * 144;
  const auto content = values<std::int16_t>(random, size);
  auto expected = values<std::int16_t>(random, size);
  const auto packed = make<ferry::device_space>("packed", content);
  auto turned = make<ferry::device_space>("turned", expected);
  std::size_t strides[8], turned_strides[8], stride = 1, turned_stride = 1;
  for (std::size_t d = 8; d-- > 0; stride *= extents[d]) strides[d] = stride;
  for (std::size_t d = 0; d < 8; turned_stride *= extents[d++]) turned_strides[d] = turned_stride;
  const auto layout = [&](const std::size_t(&s)[8]) {
    Kokkos::LayoutStride result(6, s[0], 2, s[1], 3, s[2], 2, s[3], 1, s[4], 2, s[5], 3, s[6], 2, s[7]);
    return result;
  };
  const wide source_view(const_cast<std::int16_t*>(packed.data()), layout(strides)),
      target_view(turned.data(), layout(turned_strides));
  ferry::copy_rows(exec, source_view, reads, target_view, writes).wait();
  for (std::size_t p = 0; p < reads.size(); ++p)
    for (std::size_t column = 0; column < 144; ++column) {
      std::size_t rest = column, place = static_cast<std::size_t>(writes[p]) * turned_strides[0];
      for (std::size_t d = 8; d-- > 1; rest /= extents[d]) place += rest % extents[d] * turned_strides[d];
      expected[place] = content[static_cast<std::size_t>(reads[p]) * 144 + column];
    }
  CHECK(take(turned) == expected);
}

}  // namespace ferry_test::copy_rows_test
