// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

/// Bags of quantized rows: their values are decoded by plain loops in double, and added in float.
namespace ferry_test::quantized_bags_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;

/// Codes without NaN, whose place in a maximum is not defined.
template <class Q>
coded_bytes finite_codes(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  auto bytes = random_codes<Q>(random, rows, width);
  if constexpr (!std::is_same_v<Q, six_bits>) {
    if constexpr (Q::code_bits == 8)
      for (auto& code : bytes.codes)
        if ((code & 0x7fu) > 0x7au) code = static_cast<unsigned char>(code & 0x3fu);
    if constexpr (ferry::has_scales<Q> && sizeof(typename Q::scale_type) == 1)
      for (auto& scale : bytes.scales)
        scale = static_cast<unsigned char>(std::is_same_v<typename Q::scale_type, ferry::ue8m0_t>
                                               ? 120 + random() % 12
                                               : 0x20 + random() % 0x40);
  }
  return bytes;
}

struct pooled_bags {
  std::vector<float> values;
  std::vector<std::int64_t> positions;  ///< of maxima
};

/// Rows added one after the other, beginning with 0, or their maxima.
template <class Pooling>
pooled_bags pooled(const std::vector<float>& table, std::size_t width, const std::vector<std::int64_t>& ids,
                   const std::vector<std::int64_t>& offsets, const std::vector<float>& weights) {
  const std::size_t bags = offsets.size() - 1;
  pooled_bags result{std::vector<float>(bags * width), std::vector<std::int64_t>(bags * width, -1)};
  for (std::size_t b = 0; b < bags; ++b)
    for (std::size_t c = 0; c < width; ++c) {
      float& value = result.values[b * width + c];
      std::int64_t& position = result.positions[b * width + c];
      for (auto k = offsets[b]; k < offsets[b + 1]; ++k) {
        const auto p = static_cast<std::size_t>(k);
        const float element = table[static_cast<std::size_t>(ids[p]) * width + c];
        if constexpr (Pooling::selects) {
          if (position < 0 || element > value) {
            value = element;
            position = k;
          }
        } else {
          value += weights.empty() ? element : weights[p] * element;
        }
      }
      if (Pooling::divides && offsets[b] < offsets[b + 1])
        value /= static_cast<float>(offsets[b + 1] - offsets[b]);
    }
  return result;
}

/// On every path, or on path::automatic alone: a row is decoded alike on all of them.
template <class Q, class Space, class ScaleSpace, class OutSpace, bool OnEveryPath = true>
void pool_everywhere(std::mt19937_64& random, std::size_t width) {
  namespace pooling = ferry::pooling;
  const std::size_t rows = 43, bags = 9, n = 61;
  const auto bytes = finite_codes<Q>(random, rows, width);
  const auto table = table_of<Q, Space, ScaleSpace>(bytes);
  const auto numbers = decoded<Q>(bytes);
  const auto ids = indices<std::int64_t>(random, n, rows);
  std::vector<std::int64_t> offsets{0, 0};
  for (std::size_t b = 2; b < bags; ++b) offsets.push_back(static_cast<std::int64_t>(random() % n));
  offsets.push_back(static_cast<std::int64_t>(n));
  std::sort(offsets.begin(), offsets.end());
  const auto weights = values<float>(random, n);
  const exec_space exec;
  const auto check = [&](auto pool, const auto& named, auto... policies) {
    auto out = make<OutSpace>("pooled", bags, width, values<float>(random, bags * width));
    ferry::gather_bags(exec, table, named, offsets, out, pool, policies...).wait();
    CHECK(same_values(take(out), pooled<decltype(pool)>(numbers, width, ids, offsets, {}).values));
  };
  const auto plan = ferry::make_plan(exec, ids, rows);
  const auto check_on = [&](auto path) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, OutSpace::name, path.name, width);
    check(pooling::sum{}, ids, path);
    check(pooling::mean{}, plan, path);
    auto out = make<OutSpace>("pooled", bags, width, values<float>(random, bags * width));
    ferry::gather_bags(exec, table, ids, offsets, out, weights, pooling::sum{}, path).wait();
    CHECK(same_values(take(out), pooled<pooling::sum>(numbers, width, ids, offsets, weights).values));
    ferry::tensor<std::int64_t, OutSpace> positions("positions", bags, width);
    ferry::gather_bags(exec, table, ids, offsets, out, positions, pooling::max{}, path).wait();
    const auto expected = pooled<pooling::max>(numbers, width, ids, offsets, {});
    CHECK(same_values(take(out), expected.values));
    CHECK(take(positions) == expected.positions);
  };
  check_on(ferry::path::automatic{});
  if constexpr (OnEveryPath) {
    if (direct_runs<Space, OutSpace>()) check_on(ferry::path::direct{});
    if constexpr (Space::is_host_accessible && ScaleSpace::is_host_accessible)
      check_on(ferry::path::staged{});
  }
}

template <class Q>
void pool_widths(std::uint64_t salt) {
  auto random = generator(salt);
  for (const std::size_t width : {32u, 96u, 160u})
    pool_everywhere<Q, ferry::mapped_space, ferry::device_space, ferry::device_space, false>(random, width);
  if constexpr (Q::block == 0)
    for (const std::size_t width : {1u, 2u, 15u, 33u})
      pool_everywhere<Q, ferry::mapped_space, ferry::device_space, ferry::device_space, false>(random, width);
}

TEST_CASE("bags of every quantization are pooled as floats", "[bags][quantized]") {
  pool_widths<quantization::e4m3>(421);
  pool_widths<quantization::e5m2>(422);
  pool_widths<by_rows>(423);
  pool_widths<quantization::mxfp8>(424);
  pool_widths<quantization::mxfp8_e5m2>(425);
  pool_widths<quantization::mxfp4>(426);
  pool_widths<quantization::nvfp4>(427);
  pool_widths<six_bits>(428);
}

using space_points = product<decltype(spaces), decltype(axis<ferry::device_space, ferry::pageable_space>)>;
TEMPLATE_LIST_TEST_CASE("bags of quantized rows, between spaces", "[bags][quantized]", space_points) {
  auto random = generator(429);
  pool_everywhere<quantization::mxfp8, at<0, TestType>, at<0, TestType>, at<1, TestType>>(random, 64);
}

TEST_CASE("bags of quantized rows report bad indices and keep their contents", "[bags][quantized]") {
  using Q = quantization::nvfp4;
  auto random = generator(430);
  const std::size_t rows = 20, width = 48;
  const auto bytes = finite_codes<Q>(random, rows, width);
  const auto table = table_of<Q, ferry::pinned_space>(bytes);
  const std::vector<std::int64_t> ids{3, 20, 4, 5, -1, 6}, offsets{0, 2, 4, 6};
  const auto poison = values<float>(random, 3 * width);
  auto out = make<ferry::device_space>("pooled", 3, width, poison);
  const exec_space exec;
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, table, ids, 2, out, ferry::pooling::sum{}).wait(), ferry::out_of_range,
      MessageMatches(ContainsSubstring("2 of 6 indices are outside of 'weights' [20 x 48]")));
  auto expected = poison;
  const auto middle = pooled<ferry::pooling::sum>(decoded<Q>(bytes), width, {4, 5}, {0, 2}, {});
  std::copy(middle.values.begin(), middle.values.end(),
            expected.begin() + static_cast<std::ptrdiff_t>(width));
  CHECK(same_values(take(out), expected));
}

}  // namespace ferry_test::quantized_bags_test
