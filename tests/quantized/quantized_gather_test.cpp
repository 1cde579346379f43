// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

namespace ferry_test::quantized_gather_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;

template <class Q, class Out, class Space, class ScaleSpace, class OutSpace>
void gather_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n) {
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto table = table_of<Q, Space, ScaleSpace>(bytes);
  const auto poison = values<Out>(random, n * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto expected = gathered(decoded<Q, Out>(bytes), width, ids, poison);
  const exec_space exec;
  for_covering_paths<Space, OutSpace, work::moves>([&](auto path) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, OutSpace::name, path.name, rows, width, n);
    auto out = make<OutSpace>("batch", n, width, poison);
    ferry::gather(exec, table, ids, out, path).wait();
    CHECK(same_values(take(out), expected));
  });
  auto by_plan = make<OutSpace>("batch", n, width, poison);
  ferry::gather(exec, table, ferry::make_plan(exec, ids, rows), by_plan).wait();
  CHECK(same_values(take(by_plan), expected));
}

using space_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("gather from quantized tables, between every two spaces", "[quantized][gather][once]",
                        space_points) {
  using space = at<0, TestType>;
  using out_space = at<1, TestType>;
  using scale_space = std::conditional_t<std::is_same_v<space, out_space>, ferry::device_space, out_space>;
  auto random = generator(401);
  for (const std::size_t width : {32u, 256u})
    for (const std::size_t n : {0u, 1u, 33u, 257u})
      gather_everywhere<quantization::mxfp8, ferry::bhalf_t, space, scale_space, out_space>(random, 211,
                                                                                            width, n);
  if constexpr (std::is_same_v<space, out_space>)
    gather_everywhere<quantization::rowwise_int8, float, space, space, out_space>(random, 500, 33, 9000);
}

template <class Q, class Out>
void gather_widths(std::uint64_t salt) {
  auto random = generator(salt);
  using scale_space = std::conditional_t<Q::in_records, ferry::mapped_space, ferry::device_space>;
  std::vector<std::size_t> widths{32, 64, 96, 160};
  if constexpr (Q::block == 16) widths.insert(widths.end(), {16, 48, 112});
  if constexpr (Q::block == 0) widths.insert(widths.end(), {1, 2, 3, 4, 15, 17, 33, 161});
  if constexpr (std::is_same_v<Q, quantization::mxfp8>) widths.push_back(4096);
  if constexpr (std::is_same_v<Q, by_rows>) widths.push_back(4097);
  for (const std::size_t width : widths)
    gather_everywhere<Q, Out, ferry::mapped_space, scale_space, ferry::device_space>(random, 37, width, 60);
}

TEST_CASE("gather decodes every quantization", "[quantized][gather]") {
  gather_widths<quantization::e4m3, ferry::bhalf_t>(402);
  gather_widths<quantization::e5m2, float>(403);
  gather_widths<by_rows, ferry::half_t>(404);
  gather_widths<quantization::mxfp8, double>(405);
  gather_widths<quantization::mxfp8_e5m2, ferry::half_t>(406);
  gather_widths<quantization::mxfp4, float>(407);
  gather_widths<quantization::nvfp4, ferry::bhalf_t>(408);
  gather_widths<six_bits, float>(409);
  gather_widths<quantization::rowwise_int8, ferry::half_t>(413);
  gather_widths<quantization::rowwise_int8, double>(414);
}

template <class Q>
void gather_unaligned(std::size_t width) {
  auto random = generator(410);
  const exec_space exec;
  const std::size_t rows = 40, n = 23;
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto table = table_of<Q, ferry::mapped_space>(bytes);
  const auto ids = indices<std::int32_t>(random, n, rows);
  for (const std::size_t offset : {0u, 1u, 2u, 3u, 8u}) {
    CAPTURE(Q::name, width, offset);
    const auto poison = values<ferry::half_t>(random, n * width + 8);
    auto memory = make<ferry::device_space>("memory", poison);
    ferry::gather(exec, table, ids, view_at(memory, offset, n, width)).wait();
    auto expected = poison;
    const auto part =
        gathered(decoded<Q, ferry::half_t>(bytes), width, ids, std::vector<ferry::half_t>(n * width));
    std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    CHECK(same_values(take(memory), expected));
  }
}

TEST_CASE("gather decodes into rows that break alignment", "[quantized][gather]") {
  gather_unaligned<quantization::mxfp8>(96);
  for (const std::size_t width : {4u, 33u, 128u}) gather_unaligned<quantization::rowwise_int8>(width);
}

TEMPLATE_TEST_CASE("rows of a quantized table arrive in a new tensor of floats", "[quantized][gather_to]",
                   ferry::device_space, ferry::pinned_space, ferry::pageable_space) {
  using Q = quantization::rowwise_int8;
  auto random = generator(105);
  const exec_space exec;
  const std::size_t rows = 60, width = 37, n = 200;
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto table = table_of<Q, ferry::mapped_space>(bytes);
  auto ids = indices<std::int64_t>(random, n, rows);
  const auto expect = [&](const ferry::tensor<float, TestType>& result) {
    CHECK(result.rank() == 2);
    CHECK(result.width() == width);
    CHECK(same_values(take(result), gathered(decoded<Q>(bytes), width, ids, std::vector<float>(n * width))));
  };
  expect(ferry::gather<TestType>(exec, table, ids).get());
  ids[3] = ids[150] = -1;  // rows of zeros
  expect(
      ferry::gather<TestType>(exec, table, ferry::make_plan(exec, ids, rows, ferry::bounds::skip{})).get());
}

/// The kernel of devices, run by a host: unit by unit or part by part, from rows at every address.
template <class Q, class Out>
void check_units(std::mt19937_64& random, std::size_t width) {
  using source = ferry::kernels::listed_rows;
  const std::size_t rows = 11, n = 29;
  const auto bytes = random_codes<Q>(random, rows, width);
  auto ids = indices<std::int64_t>(random, n, rows);
  ids[5] = -1;
  const auto scales =
      elements_of<std::conditional_t<ferry::has_scales<Q>, typename Q::scale_type, char>>(bytes.scales);
  const auto codes = row_memory<Q>(bytes);
  const auto numbers = decoded<Q, Out>(bytes);
  for (std::size_t shift = 0; shift < 16; ++shift)
    for (const std::size_t offset : {0u, 1u, 8u}) {
      CAPTURE(Q::name, width, shift, offset);
      alignas(16) static unsigned char memory[1 << 17];
      alignas(16) static unsigned char target[1 << 19];
      std::copy(codes.begin(), codes.end(), memory + shift);
      const auto poison = values<Out>(random, n * width);
      auto* const out = reinterpret_cast<Out*>(target) + offset;
      ferry::kernels::coded_memory<Q> table;
      table.codes = reinterpret_cast<const std::byte*>(memory + shift);
      table.row_bytes = static_cast<std::int64_t>(code_bytes<Q>(width));
      if constexpr (ferry::has_scales<Q>) table.scales = scales.data();
      if constexpr (Q::in_records) table.record_bytes = static_cast<std::int64_t>(record_bytes(width));
      table.blocks = static_cast<std::int64_t>(scale_count<Q>(width));
      table.tensor_scale = bytes.tensor_scale;
      const auto begin = reinterpret_cast<std::uintptr_t>(table.codes);
      table.memory = {begin, begin + codes.size()};
      check_decode(table, source{ids.data()}, n, width, out, poison, gathered(numbers, width, ids, poison));
    }
}

TEST_CASE("rows of packed codes end where the next row begins", "[quantized][errors]") {
  // Codes of 4 bits count as elements of a byte: the next array in memory must not seem to overlap.
  const ferry::quantized_tensor<quantization::mxfp4, ferry::pageable_space> table("table", 6, 64);
  const auto wide = ferry::detail::numbers_of(table);
  const auto batch = [&](std::int64_t rows_ahead) {
    auto array = wide;
    array.data += rows_ahead * wide.row_stride();
    return array;
  };
  CHECK_FALSE(ferry::detail::overlap(wide, batch(6)));
  CHECK_FALSE(ferry::detail::overlap(batch(6), wide));
  CHECK(ferry::detail::overlap(wide, batch(5)));
  CHECK(ferry::detail::overlap(wide, batch(-5)));
}

TEST_CASE("units of a device decode rows at every address", "[quantized][gather]") {
  auto random = generator(411);
  for (const std::size_t width : {1u, 7u, 16u, 33u, 160u, 161u}) {
    check_units<quantization::e4m3, ferry::bhalf_t>(random, width);
    check_units<by_rows, double>(random, width);
    check_units<quantization::rowwise_int8, float>(random, width);
    check_units<quantization::rowwise_int8, ferry::half_t>(random, width);
  }
  for (const std::size_t width : {32u, 160u}) {
    check_units<quantization::mxfp8, ferry::bhalf_t>(random, width);
    check_units<quantization::mxfp4, float>(random, width);
    check_units<nibbles_by_words, float>(random, width);
    check_units<nibbles_by_words, ferry::bhalf_t>(random, width);
    check_units<quantization::nvfp4, ferry::half_t>(random, width);
    check_units<quantization::nvfp4, double>(random, width + 16);
    check_units<six_bits, float>(random, width);
  }
}

using bounds_points = rotated<decltype(axis<std::int32_t, std::uint64_t>), decltype(bounds),
                              decltype(axis<ferry::device_space, ferry::pageable_space>)>;
TEMPLATE_LIST_TEST_CASE("gather from quantized tables with bad indices", "[quantized][gather][bounds]",
                        bounds_points) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = at<2, TestType>;
  constexpr bool is_device = std::is_same_v<space, ferry::device_space>;
  using Q = std::conditional_t<is_device, quantization::mxfp4, quantization::rowwise_int8>;
  auto random = generator(412);
  const std::size_t rows = 61, width = 64, n = 57;
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto table = table_of<Q, space>(bytes);
  auto ids = indices<index>(random, n, rows);
  for (std::size_t p = 3; p < n; p += 5) ids[p] = static_cast<index>(p % 2 == 0 ? -1 : 61);
  const auto poison = values<float>(random, n * width);
  const auto treat = std::is_same_v<policy, ferry::bounds::clamp> ? on_bad::clamp : on_bad::leave;
  const auto expected = gathered(decoded<Q>(bytes), width, ids, poison, treat);
  const exec_space exec;
  const auto finish = [](ferry::ticket work) {
    if constexpr (policy::reports)
      CHECK_THROWS_MATCHES(work.wait(), ferry::out_of_range,
                           MessageMatches(ContainsSubstring(
                               "ferry::gather: 11 of 57 indices are outside of 'weights' [61 x 64]")));
    else
      CHECK_NOTHROW(work.wait());
  };
  for_each_path<space, ferry::device_space, work::moves>([&](auto path) {
    CAPTURE(space::name, path.name, policy::name);
    auto out = make<ferry::device_space>("batch", n, width, poison);
    finish(ferry::gather(exec, table, ids, out, path, policy{}));
    CHECK(same_values(take(out), expected));
  });
  if constexpr (std::is_signed_v<index>) {
    auto by_plan = make<ferry::pageable_space>("batch", n, width, poison);
    finish(ferry::gather(exec, table, ferry::make_plan(exec, ids, rows, policy{}), by_plan, policy{}));
    CHECK(same_values(take(by_plan), expected));
  }
  if constexpr (is_device) {
    const auto empty = random_codes<Q>(random, n, width);
    auto packed = table_of<Q, ferry::pinned_space>(empty, "packed");
    finish(ferry::gather(exec, table, ids, packed, policy{}));
    auto in_codes = bytes_of(packed);
    in_codes.tensor_scale = 1.0f;
    CHECK(
        same_values(decoded<Q>(in_codes), gathered(decoded<Q>(bytes), width, ids, decoded<Q>(empty), treat)));
  }
}

TEST_CASE("quantized tables refuse what does not fit", "[quantized][errors]") {
  const exec_space exec;
  using table_type = ferry::quantized_tensor<quantization::mxfp8, ferry::pinned_space>;
  CHECK_THROWS_MATCHES(table_type("weights", 3, 100), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("rows of 'weights' have 100 numbers") &&
                                      ContainsSubstring("mxfp8 consist of blocks of 32")));
  CHECK_THROWS_AS(table_type("weights", 3, -32), ferry::invalid_argument);
  table_type table("weights", 10, 64);
  CHECK(table.rows() == 10);
  CHECK(table.width() == 64);
  CHECK(table.blocks() == 2);
  CHECK(table.row_bytes() == 66);
  ferry::tensor<float, ferry::device_space> narrow("narrow", 2, 32), batch("batch", 2, 64);
  const std::vector<int> two{1, 2}, three{1, 2, 3};
  CHECK_THROWS_AS(ferry::gather(exec, table, two, narrow).wait(), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::gather(exec, table, three, batch).wait(), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::gather(exec, table, ferry::make_plan(exec, two, 11), batch).wait(),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::quantize(exec, batch, table).wait(), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::dequantize(exec, table, batch).wait(), ferry::invalid_argument);
  ferry::quantized_tensor<quantization::e4m3, ferry::pinned_space> scaled("scaled", 2, 3);
  for (const float factor : {0.0f, -1.0f, std::nanf(""), HUGE_VALF})
    CHECK_THROWS_MATCHES(scaled.set_scale(factor), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring("the factor of 'scaled' can't be")));
  CHECK(scaled.scale() == 1.0f);
  const table_type empty("empty", 0, 64);
  ferry::tensor<float, ferry::device_space> none("none", 0, 64);
  CHECK_NOTHROW(ferry::gather(exec, empty, std::vector<int>{}, none).wait());
  CHECK_NOTHROW(ferry::dequantize(exec, empty, none).wait());
}

}  // namespace ferry_test::quantized_gather_test
