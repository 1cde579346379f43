// SPDX-License-Identifier: Apache-2.0
#include "quantized/rowwise_int8.hpp"
#include "support/lanes_of_threads.hpp"
#include "support/test.hpp"

#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/int8.hpp>

/// The kernels of 8-bit rows as a device runs them, by a host's threads: the lanes that encode a row, and the threads
/// that pool rows by operations of floats.
namespace ferry_test::rowwise_int8_lanes_test {

namespace kernels = ferry::kernels;

/// Rows of all kinds: of random ranges, constant, with numbers that are not finite, with offsets far beyond their
/// steps, at the ends of float's range.
template <class V>
std::vector<V> rows_of_kinds(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<V> result;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t kind = row % 9;
    const double middle = kind == 1 ? 1000.0 : kind == 2 ? 1e-30 : 10.0 * unit(random);
    const double spread = kind == 3 ? 0.0 : kind == 1 ? 1e-3 : kind == 2 ? 1.0 : std::ldexp(1.0, -4);
    const std::size_t odd = random() % width;
    for (std::size_t c = 0; c < width; ++c) {
      double value = middle + spread * unit(random);
      if (kind == 2) value = std::abs(value);
      if (kind == 4 && c == odd) value = infinity;
      if (kind == 5 && c == odd) value = -infinity;
      if (kind == 6 && c == odd) value = std::nan("");
      if (kind == 7) value = c % 2 == 0 ? -0.0 : 0.0;
      if (kind == 8 && sizeof(V) >= 4) value = unit(random) * (row % 2 == 0 ? 1e38 : 1e-40);
      result.push_back(V(value));
    }
  }
  return result;
}

template <class Tile, class V>
void quantize_by_lanes(std::mt19937_64& random, std::size_t width, int least) {
  using kernel =
      kernels::encode_rows<ferry::quantization::rowwise_int8, V, kernels::deciding_positions, Tile>;
  const std::size_t rows = 18, bytes = record_bytes(width);
  CAPTURE(width, Tile::elements, least);
  const auto content = rows_of_kinds<V>(random, rows, width);
  const auto expected = records_of(content, width);
  const auto values = make<ferry::pinned_space>("values", rows, width, content);
  const auto w = static_cast<std::int64_t>(width), b = static_cast<std::int64_t>(bytes);
  ferry::rowwise_int8_tensor<ferry::pinned_space> table("codes", rows + 3, width);
  const auto quantize = [&](const kernels::deciding_positions& source) {
    put(table.records(), std::vector<std::byte>((rows + 3) * bytes, std::byte{0xEE}));
    run_by_lanes(kernel{values.data(), w, w, table.data(), b, nullptr, 1, 1.0f,
                        static_cast<std::int64_t>(rows), source},
                 least);
    return take(table.records());
  };
  auto whole = expected;
  whole.resize((rows + 3) * bytes, std::byte{0xEE});
  CHECK(quantize({}) == whole);
  // Into the rows of a table, in reverse, without some.
  std::vector<std::int64_t> table_rows;
  std::vector<std::byte> scattered((rows + 3) * bytes, std::byte{0xEE});
  for (std::size_t p = 0; p < rows; ++p) {
    const std::size_t row = rows + 2 - p;
    table_rows.push_back(p % 5 == 2 ? -1 : static_cast<std::int64_t>(row));
    if (p % 5 != 2)
      std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(p * bytes), bytes,
                  scattered.begin() + static_cast<std::ptrdiff_t>(row * bytes));
  }
  ferry::detail::index_report findings{}, repeats{};
  kernels::deciding_positions source{};
  source.table_rows = table_rows.data();
  source.findings = &findings;
  source.repeats = &repeats;
  CHECK(quantize(source) == scattered);
  // A faulty batch writes nothing.
  const std::vector<std::byte> untouched((rows + 3) * bytes, std::byte{0xEE});
  findings.out_of_range = 1;
  CHECK(quantize(source) == untouched);
  findings.out_of_range = 0;
  repeats.duplicates = 1;
  CHECK(quantize(source) == untouched);
}

TEMPLATE_TEST_CASE("lanes of a device quantize rows of all widths", "[kernels][int8]", float, double,
                   ferry::half_t) {
  auto random = generator(131);
  for (const std::size_t width :
       {1u, 3u, 4u, 7u, 8u, 12u, 40u, 64u, 100u, 127u, 128u, 129u, 132u, 256u, 257u, 264u, 1000u})
    for (const int least : {1, 32, 64}) {
      if (least > 1 && !std::is_same_v<TestType, float>) continue;
      quantize_by_lanes<kernels::single_tile, TestType>(random, width, least);
      if (width % 4 == 0) quantize_by_lanes<kernels::packed_tile, TestType>(random, width, least);
      if (width % 8 == 0) quantize_by_lanes<kernels::wide_packed_tile, TestType>(random, width, least);
    }
}

TEST_CASE("a fused decode has the bits of the sum in double, wherever that does not round",
          "[kernels][int8]") {
  auto random = generator(132);
  const auto number = [](std::uint64_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  };
  std::size_t fused = 0, wrong = 0, misses = 0;
  for (std::size_t k = 0; k < 2000000; ++k) {
    const std::uint64_t drawn = random(), more = random();
    std::uint32_t scale = static_cast<std::uint32_t>(drawn), offset = static_cast<std::uint32_t>(drawn >> 32);
    if (k % 8 >= 2) {  // exponents near one another
      const int near = static_cast<int>(scale >> 23 & 255u) + static_cast<int>(more % 64) - 28;
      offset = (offset & 0x807fffffu) | static_cast<std::uint32_t>(std::clamp(near, 0, 255)) << 23;
    }
    if (k % 8 == 3) scale &= 0xffffffffu << more % 24;  // few bits, for ties
    if (k % 8 == 4) offset &= 0xffffffffu << more % 24;
    if (k % 8 == 5) scale &= 0x007fffffu;  // subnormal
    if (k % 8 == 6) offset &= 0x80000000u;
    const kernels::rowwise_int8_code code{number(scale), number(offset)};
    const auto element = k % 3 == 0 ? std::uint8_t{255} : static_cast<std::uint8_t>(more >> 40);
    const auto plain = static_cast<float>(code.decode(element));
    const float result = code.decode_fused(static_cast<float>(element));
    const bool same = std::isnan(plain)
                          ? std::isnan(result)
                          : std::bit_cast<std::uint32_t>(plain) == std::bit_cast<std::uint32_t>(result);
    if (code.adds_exactly()) {
      ++fused;
      if (!same) ++wrong;
    } else if (!same) {
      ++misses;
    }
  }
  CHECK(wrong == 0);
  CHECK(fused > 1000000);
  CHECK(misses > 0);  // so that the test is needed
}

TEST_CASE("threads of a device pool 8-bit rows to the bits of their decoded floats",
          "[kernels][int8][bags]") {
  auto random = generator(133);
  using source = kernels::index_rows<std::int64_t, ferry::bounds::skip>;
  using table_type = kernels::pooled_table<std::byte>;
  using pool_kernel =
      kernels::pool_rows<float, ferry::pooling::sum, table_type, source, std::int64_t, void, float, void>;
  const std::size_t rows = 40, bags = 30;
  for (const std::size_t width : {4u, 8u, 12u, 100u, 128u, 256u, 3u, 127u, 129u}) {
    CAPTURE(width);
    auto records = records_of(uneven_rows<float>(random, rows, width), width);
    // Offsets of row 5 k so far from the scale that the sums round in double, and ties of them.
    for (std::size_t row = 0; row < rows; row += 5) {
      const float scale = std::ldexp(1.0f + std::ldexp(static_cast<float>(random() % 4096), -12), -3);
      const float offset = std::ldexp(row % 2 == 0 ? 1.25f : -1.75f, row % 3 == 0 ? -60 : 28);
      std::byte* const tail = records.data() + row * record_bytes(width) + width;
      std::memcpy(tail, &scale, 4);
      std::memcpy(tail + 4, &offset, 4);
    }
    const auto decoded = as<float>(values_of(records, width));
    const auto table = table_of<ferry::pinned_space>(records, width);
    std::vector<std::int64_t> ids, offsets{0};
    for (std::size_t b = 0; b < bags; ++b) {
      for (std::size_t k = 0; k < b % 14; ++k)
        ids.push_back(random() % 11 == 0
                          ? -1
                          : static_cast<std::int64_t>(b % 2 == 0 ? random() % rows : 5 * (random() % 8) + 1));
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
    }
    std::vector<float> expected(bags * width, 0.0f);
    for (std::size_t b = 0; b < bags; ++b)
      for (auto k = offsets[b]; k < offsets[b + 1]; ++k)
        if (const auto row = ids[static_cast<std::size_t>(k)]; row >= 0)
          for (std::size_t c = 0; c < width; ++c)
            expected[b * width + c] += decoded[static_cast<std::size_t>(row) * width + c];
    const auto w = static_cast<std::int64_t>(width);
    for (const int tile : {1, 4, 8}) {
      if (w % tile != 0) continue;
      CAPTURE(tile);
      auto out = make<ferry::pinned_space>("pooled", bags, width, values<float>(random, bags * width));
      const std::int64_t tiles = w / tile;
      pool_kernel pool{{table_type::of(table.data(), static_cast<std::int64_t>(table.row_bytes())),
                        source{ids.data(), static_cast<std::int64_t>(rows), {}}, nullptr, w,
                        static_cast<std::int64_t>(ids.size())},
                       {offsets.data(),
                        0,
                        static_cast<std::int64_t>(bags),
                        static_cast<std::int64_t>(ids.size()),
                        false,
                        false,
                        {}},
                       out.data(),
                       w,
                       nullptr,
                       0,
                       ferry::detail::fast_divisor(tiles),
                       tile == 4,
                       tile == 8,
                       false,
                       true,
                       nullptr};
      for (std::int64_t i = static_cast<std::int64_t>(bags) * tiles; i-- > 0;) pool(i);
      CHECK(same_values(take(out), expected));
    }
  }
}

}  // namespace ferry_test::rowwise_int8_lanes_test
