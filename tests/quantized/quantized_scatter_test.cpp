// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"
#include "support/lanes_of_threads.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>

namespace ferry_test::quantized_scatter_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;

/// Numbers of all magnitudes.
template <class V>
std::vector<V> numbers_for(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<float> unit;
  std::vector<V> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(V(std::ldexp(unit(random), static_cast<int>(random() % 9) - 4)));
  return result;
}

/// Codes and scales of rows of numbers, by loops over the quantization's functions, whose bits the golden
/// files have.
template <class Q, class V>
coded_bytes encoded(const std::vector<V>& numbers, std::size_t width, float tensor_scale) {
  coded_bytes bytes{numbers.size() / width, width, {}, {}, tensor_scale};
  const std::size_t block = Q::block == 0 ? width : static_cast<std::size_t>(Q::block);
  std::vector<typename Q::scale_type> scales;
  for (std::size_t row = 0; row < bytes.rows; ++row) {
    std::vector<unsigned char> codes(code_bytes<Q>(width));
    for (std::size_t first = 0; first < width; first += block) {
      ferry::block_range range{HUGE_VALF, -HUGE_VALF};
      std::vector<float> floats;
      for (std::size_t c = first; c < first + block; ++c)
        floats.push_back(static_cast<float>(number(numbers[row * width + c])));
      for (const float value : floats) {
        range.least = std::min(range.least, value);
        range.most = std::max(range.most, value);
      }
      const auto scale = Q::scale_of(range, tensor_scale);
      scales.push_back(scale);
      for (std::size_t e = 0; e < block; ++e) {
        const auto code = Q::encode(floats[e], Q::step_of(scale, tensor_scale));
        for (std::size_t b = 0; b < static_cast<std::size_t>(Q::code_bits); ++b) {
          const std::size_t bit = (first + e) * static_cast<std::size_t>(Q::code_bits) + b;
          codes[bit / 8] = static_cast<unsigned char>(codes[bit / 8] | (code >> b & 1u) << (bit % 8));
        }
      }
    }
    bytes.codes.insert(bytes.codes.end(), codes.begin(), codes.end());
  }
  if constexpr (ferry::has_scales<Q>) bytes.scales = bytes_of(scales);
  return bytes;
}

/// Row `row` of the table becomes row `position` of other codes.
template <class Q>
void replace_row(coded_bytes& table, std::size_t row, const coded_bytes& source, std::size_t position) {
  const std::size_t codes = code_bytes<Q>(table.width);
  const std::size_t scales = table.scales.size() / table.rows;
  std::copy_n(source.codes.begin() + static_cast<std::ptrdiff_t>(position * codes), codes,
              table.codes.begin() + static_cast<std::ptrdiff_t>(row * codes));
  std::copy_n(source.scales.begin() + static_cast<std::ptrdiff_t>(position * scales), scales,
              table.scales.begin() + static_cast<std::ptrdiff_t>(row * scales));
}

template <class Q, class V, class Space, class ScaleSpace>
void scatter_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n) {
  const auto before = random_codes<Q>(random, rows, width);
  const auto batch = numbers_for<V>(random, n * width);
  const auto ids = indices<std::int32_t>(random, n, rows);
  const auto rows_of_batch = encoded<Q>(batch, width, before.tensor_scale);
  auto last = before;
  for (std::size_t p = 0; p < n; ++p)
    replace_row<Q>(last, static_cast<std::size_t>(ids[p]), rows_of_batch, p);
  const exec_space exec;
  for_covering_paths<ferry::device_space, Space, work::moves>([&](auto path) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, path.name, rows, width, n);
    auto table = table_of<Q, Space, ScaleSpace>(before);
    const auto values_of_batch = make<ferry::device_space>("values", n, width, batch);
    ferry::scatter(exec, table, ids, values_of_batch, path).wait();
    CHECK(same(bytes_of(table), last));
  });
  auto summed = before;
  using sum = std::conditional_t<std::is_same_v<V, double>, double, float>;
  std::map<std::int32_t, std::vector<sum>> sums;
  for (std::size_t p = 0; p < n; ++p) {
    auto& row = sums[ids[p]];
    if (row.empty()) row.assign(width, sum{-0.0});
    for (std::size_t c = 0; c < width; ++c) row[c] += static_cast<sum>(number(batch[p * width + c]));
  }
  for (const auto& [row, total] : sums)
    replace_row<Q>(summed, static_cast<std::size_t>(row), encoded<Q>(total, width, before.tensor_scale), 0);
  auto table = table_of<Q, Space, ScaleSpace>(before);
  const auto pageable = make<ferry::pageable_space>("values", n, width, batch);
  ferry::scatter(exec, table, ids, pageable, ferry::duplicates::sum{}).wait();
  CHECK(same(bytes_of(table), summed));
}

template <class Q, class V, class Space, class ScaleSpace, class FromSpace>
void whole_tables(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  const auto numbers = numbers_for<V>(random, rows * width);
  const float tensor_scale = Q::has_tensor_scale ? 0.37f : 1.0f;
  const auto expected = encoded<Q>(numbers, width, tensor_scale);
  const auto values_of_rows = make<FromSpace>("values", rows, width, numbers);
  const exec_space exec;
  for_covering_paths<FromSpace, Space, work::copies>([&](auto path) {
    CAPTURE(Q::name, FromSpace::name, Space::name, path.name, rows, width);
    auto table = table_of<Q, Space, ScaleSpace>(random_codes<Q>(random, rows, width));
    if constexpr (Q::has_tensor_scale) table.set_scale(tensor_scale);
    ferry::quantize(exec, values_of_rows, table, path).wait();
    CHECK(same(bytes_of(table), expected));
    auto out = make<FromSpace>("out", rows, width, numbers_for<V>(random, rows * width));
    ferry::dequantize(exec, table, out, path).wait();
    CHECK(same_values(take(out), rounded_once<V>(decoded<Q>(expected))));
  });
  auto table = table_of<Q, Space, ScaleSpace>(expected);
  auto copied = table_of<Q, ferry::pinned_space, ferry::device_space>(random_codes<Q>(random, rows, width));
  ferry::copy(exec, table, copied).wait();
  CHECK(same(bytes_of(copied), expected));
}

/// The lanes of a device encode, by a thread for each.
template <class Q, class Tile>
void check_lanes(std::mt19937_64& random, std::size_t rows, std::size_t width, int least) {
  using source = ferry::kernels::deciding_positions;
  const auto numbers = numbers_for<float>(random, rows * width);
  const float tensor_scale = Q::has_tensor_scale ? 0.37f : 1.0f;
  const auto expected = encoded<Q>(numbers, width, tensor_scale);
  std::vector<unsigned char> codes(expected.codes.size());
  std::vector<typename Q::scale_type> scales(rows * scale_count<Q>(width));
  const ferry::kernels::encode_rows<Q, float, source, Tile> encode{
      numbers.data(),
      static_cast<std::int64_t>(width),
      static_cast<std::int64_t>(width),
      reinterpret_cast<std::byte*>(codes.data()),
      static_cast<std::int64_t>(code_bytes<Q>(width)),
      scales.data(),
      static_cast<std::int64_t>(ferry::has_scales<Q> ? scale_count<Q>(width) : 1),
      tensor_scale,
      static_cast<std::int64_t>(rows),
      source{}};
  run_by_lanes(encode, least);
  CAPTURE(Q::name, rows, width, Tile::elements, least);
  CHECK(codes == expected.codes);
  if constexpr (ferry::has_scales<Q>) CHECK(bytes_of(scales) == expected.scales);
}
template <class Q>
void check_lanes(std::mt19937_64& random, std::size_t width) {
  for (const int least : {1, 32, 64}) {
    check_lanes<Q, ferry::kernels::single_tile>(random, 3, width, least);
    if (width % 4 == 0) check_lanes<Q, ferry::kernels::packed_tile>(random, 3, width, least);
    if (width % 8 == 0) check_lanes<Q, ferry::kernels::wide_packed_tile>(random, 3, width, least);
  }
}

TEST_CASE("scatter encodes rows of every quantization", "[quantized][scatter]") {
  auto random = generator(421);
  using ferry::device_space, ferry::mapped_space, ferry::pageable_space, ferry::pinned_space;
  for (const std::size_t n : {0u, 1u, 90u}) {
    scatter_everywhere<quantization::mxfp8, float, mapped_space, device_space>(random, 61, 96, n);
    scatter_everywhere<quantization::e4m3, double, pageable_space, pageable_space>(random, 61, 33, n);
    scatter_everywhere<quantization::nvfp4, ferry::bhalf_t, pinned_space, mapped_space>(random, 61, 48, n);
    scatter_everywhere<by_rows, ferry::half_t, device_space, pinned_space>(random, 61, 17, n);
    scatter_everywhere<six_bits, float, mapped_space, mapped_space>(random, 61, 64, n);
  }
}

TEST_CASE("a scatter with a bad index leaves a quantized table unchanged", "[quantized][scatter][bounds]") {
  auto random = generator(422);
  const exec_space exec;
  const auto before = random_codes<quantization::mxfp8>(random, 20, 64);
  auto table = table_of<quantization::mxfp8, ferry::mapped_space>(before);
  const auto batch = make<ferry::device_space>("values", 3, 64, numbers_for<float>(random, 3 * 64));
  const std::vector<int> ids{3, 20, 5};
  CHECK_THROWS_AS(ferry::scatter(exec, table, ids, batch).wait(), ferry::out_of_range);
  CHECK(same(bytes_of(table), before));
  CHECK_THROWS_AS(ferry::scatter(exec, table, ids, batch, ferry::duplicates::assume_unique{}).wait(),
                  ferry::out_of_range);
  CHECK(same(bytes_of(table), before));
  const std::vector<int> twice{3, 7, 3};
  CHECK_THROWS_AS(ferry::scatter(exec, table, twice, batch, ferry::duplicates::reject{}).wait(),
                  ferry::invalid_argument);
  CHECK(same(bytes_of(table), before));
}

TEST_CASE("a scatter that may not write the scales leaves the codes as they are", "[quantized][scatter]") {
  auto random = generator(426);
  const exec_space exec;
  const auto before = random_codes<quantization::mxfp8>(random, 20, 64);
  auto table = table_of<quantization::mxfp8, ferry::mapped_space>(before);
  const auto batch = make<ferry::device_space>("values", 3, 64, numbers_for<float>(random, 3 * 64));
  const std::vector<int> ids{3, 19, 5};
  const auto refused = [&](const auto&... policies) {
    CHECK_THROWS_AS(ferry::scatter(exec, table, ids, batch, policies...).wait(), ferry::invalid_argument);
    CHECK(same(bytes_of(table), before));
  };
  {
    const ferry::cached_table hot(table.scales(), ferry::cache::first{.rows = 5});
    refused();
    refused(ferry::duplicates::assume_unique{});
    refused(ferry::duplicates::mean{});
  }
  ferry::scatter(exec, table, ids, batch).wait();
  CHECK_FALSE(same(bytes_of(table), before));
}

TEST_CASE("quantize, dequantize and copy whole tables", "[quantized]") {
  auto random = generator(423);
  using ferry::device_space, ferry::mapped_space, ferry::pageable_space, ferry::pinned_space;
  whole_tables<quantization::mxfp8, float, mapped_space, device_space, device_space>(random, 70, 256);
  whole_tables<quantization::mxfp8_e5m2, double, device_space, pageable_space, pageable_space>(random, 9, 32);
  whole_tables<quantization::mxfp4, ferry::bhalf_t, pageable_space, pinned_space, pinned_space>(random, 9,
                                                                                                96);
  whole_tables<quantization::nvfp4, float, pinned_space, pinned_space, mapped_space>(random, 9, 48);
  whole_tables<quantization::e5m2, ferry::half_t, pageable_space, pageable_space, device_space>(random, 9,
                                                                                                161);
  whole_tables<by_rows, float, device_space, device_space, pageable_space>(random, 9, 1);
  whole_tables<six_bits, float, mapped_space, pinned_space, device_space>(random, 9, 64);
}

TEST_CASE("lanes of a device encode rows as single threads do", "[quantized]") {
  auto random = generator(424);
  for (const std::size_t width : {32u, 96u, 160u, 416u}) {
    check_lanes<quantization::mxfp8>(random, width);
    check_lanes<quantization::mxfp4>(random, width);
    check_lanes<quantization::nvfp4>(random, width);
    check_lanes<six_bits>(random, width);
  }
  for (const std::size_t width : {1u, 33u, 100u, 161u, 256u, 520u}) {
    check_lanes<quantization::e4m3>(random, width);
    check_lanes<by_rows>(random, width);
  }
  check_lanes<nibbles_of_48>(random, 48);
  check_lanes<nibbles_of_48>(random, 480);
}

TEST_CASE("products by a reciprocal have the bits of quotients", "[quantized]") {
  auto random = generator(427);
  const auto float_of = [](std::uint64_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  };
  std::size_t wrong = 0, middles = 0;
  for (std::size_t k = 0; k < 300000; ++k) {
    const float step = std::abs(float_of(random()));
    if (!(step > 0.0f) || !std::isfinite(step)) continue;
    const ferry::detail::step_quotients quotients(step);
    float value[4], result[4];
    for (float& number : value) {
      number = float_of(random());
      if (k % 4 != 0 && std::isnormal(number))
        number =
            std::ldexp(number, std::ilogb(step) - std::ilogb(number) + static_cast<int>(random() % 20) - 10);
    }
    // Neighbours of the places at which codes round.
    if (k % 4 == 1)
      value[0] =
          std::nextafter(step * static_cast<float>(random() % 64) / 4.0f, k % 8 == 1 ? 0.0f : HUGE_VALF);
    if (k % 4 == 2) value[1] = k % 8 == 2 ? -0.0f : 0.0f;
    if (!quotients.of_four(value, result)) continue;
    ++middles;
    for (std::size_t e = 0; e < 4; ++e) {
      const float expected = ferry::detail::quotient(value[e], step);
      // Far below half of the least code remainders may be inexact, but not the sign.
      const bool same = std::bit_cast<std::uint32_t>(result[e]) == std::bit_cast<std::uint32_t>(expected);
      const bool tiny = std::abs(expected) < 0x1p-40f && std::abs(result[e]) < 0x1p-40f &&
                        std::signbit(result[e]) == std::signbit(expected);
      if (!same && !tiny) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(middles > 50000);
}

TEST_CASE("rowwise_int8 is a quantization with the bits of its records", "[quantized][int8]") {
  auto random = generator(425);
  const std::size_t rows = 12, width = 37;
  const auto numbers = numbers_for<float>(random, rows * width);
  const auto source = make<ferry::device_space>("values", rows, width, numbers);
  ferry::quantized_tensor<quantization::rowwise_int8, ferry::device_space> table("table", rows, width);
  static_assert(std::is_same_v<decltype(table), ferry::rowwise_int8_tensor<ferry::device_space>>);
  const exec_space exec;
  ferry::quantize(exec, source, table).wait();
  const auto records = take(table.records());
  const auto expected = encoded<quantization::rowwise_int8>(numbers, width, 1.0f);
  const std::size_t bytes = table.row_bytes();
  for (std::size_t row = 0; row < rows; ++row) {
    CHECK(std::memcmp(records.data() + row * bytes, expected.codes.data() + row * width, width) == 0);
    CHECK(std::memcmp(records.data() + row * bytes + width, expected.scales.data() + 8 * row, 8) == 0);
  }
  ferry::rowwise_int8_tensor<ferry::pinned_space> copied("copied", rows, width);
  ferry::copy(exec, table, copied).wait();
  CHECK(take(copied.records()) == records);
}

}  // namespace ferry_test::quantized_scatter_test
