// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"
#include "support/lanes_of_threads.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>

namespace ferry_test::quantized_scatter_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;

/// Codes and scales of rows of numbers: of 8-bit rows by record_of, of others by loops over the quantization's functions,
/// whose bits the golden files have.
template <class Q, class V>
coded_bytes encoded(const std::vector<V>& numbers, std::size_t width, float tensor_scale) {
  coded_bytes bytes{numbers.size() / width, width, {}, {}, tensor_scale};
  if constexpr (Q::in_records) {
    for (std::size_t row = 0; row < bytes.rows; ++row) {
      const auto record = bytes_of(record_of(row_at(numbers, width, row)));
      const auto codes = record.begin(), scale = codes + static_cast<std::ptrdiff_t>(width);
      bytes.codes.insert(bytes.codes.end(), codes, scale);
      bytes.scales.insert(bytes.scales.end(), scale, scale + 8);
    }
    return bytes;
  }
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

/// A table after a scatter: rows are combined in the order of their positions, in the type of sums, and encoded once.
template <class Q, class V, class Index>
coded_bytes scattered_codes(coded_bytes table, const std::vector<Index>& ids, const std::vector<V>& batch,
                            std::string_view how, on_bad policy = on_bad::leave) {
  using sum = std::conditional_t<std::is_same_v<V, double>, double, float>;
  const std::size_t width = table.width;
  std::map<std::int64_t, std::vector<std::size_t>> named;
  for (std::size_t p = 0; p < ids.size(); ++p)
    if (const auto row = row_of(ids[p], table.rows, policy); row >= 0) named[row].push_back(p);
  for (const auto& [row, positions] : named) {
    std::vector<sum> total(width, sum{-0.0});
    const auto add = [&](std::size_t p) {
      for (std::size_t c = 0; c < width; ++c) total[c] += static_cast<sum>(number(batch[p * width + c]));
    };
    if (how == "duplicates::sum" || how == "duplicates::mean")
      for (const std::size_t p : positions) add(p);
    else
      add(how == "duplicates::last" ? positions.back() : positions.front());
    if (how == "duplicates::mean")
      for (auto& element : total) element /= static_cast<sum>(positions.size());
    replace_row<Q>(table, static_cast<std::size_t>(row), encoded<Q>(total, width, table.tensor_scale), 0);
  }
  return table;
}

/// True if the rows are named by the indices themselves or by a plan.
enum class named_by { indices, plan };

template <class Q, class V, class Space, class ScaleSpace, class ValueSpace, class Duplicates, named_by How,
          class Path>
void scatter_by(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n, Path path) {
  CAPTURE(Q::name, Space::name, ScaleSpace::name, path.name, Duplicates::name, How == named_by::plan, width);
  constexpr bool may_repeat = Duplicates::needs_plan && !Duplicates::forbids;
  const auto before = random_codes<Q>(random, rows, width);
  const auto batch = numbers_for<V>(random, n * width);
  const auto ids =
      may_repeat ? indices<std::int64_t>(random, n, rows) : unique_indices<std::int64_t>(random, n, rows);
  const auto values_of_batch = make<ValueSpace>("values", n, width, batch);
  const exec_space exec;
  auto table = table_of<Q, Space, ScaleSpace>(before);
  if constexpr (How == named_by::plan)
    ferry::scatter(exec, table, ferry::make_plan(exec, ids, rows), values_of_batch, path, Duplicates{})
        .wait();
  else
    ferry::scatter(exec, table, ids, values_of_batch, path, Duplicates{}).wait();
  CHECK(same(bytes_of(table), scattered_codes<Q>(before, ids, batch, Duplicates::name)));
}

template <class Q, class V, class Space, class ScaleSpace>
void scatter_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n) {
  using ferry::device_space, ferry::pageable_space;
  using ferry::duplicates::last, ferry::duplicates::sum;
  for_covering_paths<device_space, Space, work::moves>([&](auto path) {
    scatter_by<Q, V, Space, ScaleSpace, device_space, last, named_by::indices>(random, rows, width, n, path);
  });
  scatter_by<Q, V, Space, ScaleSpace, pageable_space, sum, named_by::indices>(random, rows, width, n,
                                                                              ferry::path::automatic{});
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
    CHECK(same_values(take(out), decoded<Q, V>(expected)));
  });
  auto table = table_of<Q, Space, ScaleSpace>(expected);
  auto copied = table_of<Q, ferry::pinned_space, ferry::device_space>(random_codes<Q>(random, rows, width));
  ferry::copy(exec, table, copied).wait();
  CHECK(same(bytes_of(copied), expected));
}

/// The lanes of a device encode, by a thread for each.
template <class Q, class Tile>
void check_lanes(std::mt19937_64& random, std::size_t width, int least) {
  using positions = ferry::kernels::deciding_positions;
  CAPTURE(Q::name, width, Tile::elements, least);
  constexpr std::size_t rows = 5;
  auto numbers = numbers_for<float>(random, rows * width);
  if constexpr (Q::in_records) {
    std::fill_n(numbers.begin(), width, 0.25f);
    numbers[width] = HUGE_VALF;
    numbers[3 * width - 1] = std::nanf("");
    for (std::size_t c = 3 * width; c < 4 * width; ++c) numbers[c] = 1000.0f + 1e-3f * numbers[c];
  }
  const float tensor_scale = Q::has_tensor_scale ? 0.37f : 1.0f;
  const auto expected = encoded<Q>(numbers, width, tensor_scale);
  auto before = random_codes<Q>(random, rows + 2, width);
  before.tensor_scale = tensor_scale;
  const auto encode = [&](const positions& source) {
    auto table = table_of<Q, ferry::pinned_space>(before);
    std::byte* codes = nullptr;
    typename Q::scale_type* scales = nullptr;
    std::int64_t stride = static_cast<std::int64_t>(code_bytes<Q>(width)), blocks = 1;
    if constexpr (Q::in_records) {
      codes = table.data();
      stride = static_cast<std::int64_t>(record_bytes(width));
    } else {
      codes = reinterpret_cast<std::byte*>(table.codes().data());
      if constexpr (ferry::has_scales<Q>) {
        scales = table.scales().data();
        blocks = static_cast<std::int64_t>(scale_count<Q>(width));
      }
    }
    const auto columns = static_cast<std::int64_t>(width);
    run_by_lanes(
        ferry::kernels::encode_rows<Q, float, positions, Tile>{
            numbers.data(), columns, columns, codes, stride, scales, blocks, tensor_scale, rows, source},
        least);
    return bytes_of(table);
  };
  auto whole = before;
  for (std::size_t p = 0; p < rows; ++p) replace_row<Q>(whole, p, expected, p);
  CHECK(same(encode({}), whole));
}
template <class Q>
void check_lanes(std::mt19937_64& random, std::size_t width) {
  for (const int least : {1, 32, 64}) {
    check_lanes<Q, ferry::kernels::single_tile>(random, width, least);
    if (width % 4 == 0) check_lanes<Q, ferry::kernels::packed_tile>(random, width, least);
    if (width % 8 == 0) check_lanes<Q, ferry::kernels::wide_packed_tile>(random, width, least);
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

TEST_CASE("scatter encodes 8-bit rows of every space", "[quantized][int8][scatter]") {
  using Q = quantization::rowwise_int8;
  using ferry::device_space, ferry::mapped_space, ferry::pageable_space, ferry::pinned_space;
  auto random = generator(111);
  for (const std::size_t n : {0u, 1u, 130u}) {
    scatter_everywhere<Q, float, device_space, device_space>(random, 211, 33, n);
    scatter_everywhere<Q, double, mapped_space, mapped_space>(random, 211, 16, n);
    scatter_everywhere<Q, ferry::half_t, pinned_space, pinned_space>(random, 211, 3, n);
    scatter_everywhere<Q, ferry::bhalf_t, pageable_space, pageable_space>(random, 211, 1, n);
  }
  scatter_everywhere<Q, float, mapped_space, mapped_space>(random, 2000, 128, 7000);
}

template <class Q>
void scatter_by_every_policy(std::size_t width) {
  namespace duplicates = ferry::duplicates;
  using device = ferry::device_space;
  using host = ferry::pageable_space;
  auto random = generator(112 + width);
  const auto run = [&]<class Duplicates>(Duplicates) {
    scatter_by<Q, float, device, device, device, Duplicates, named_by::plan>(random, 97, width, 90,
                                                                             ferry::path::direct{});
    scatter_by<Q, float, host, host, host, Duplicates, named_by::indices>(random, 97, width, 90,
                                                                          ferry::path::staged{});
  };
  run(duplicates::sum{});
  run(duplicates::mean{});
  run(duplicates::first{});
  run(duplicates::assume_unique{});
  run(duplicates::reject{});
}

TEST_CASE("scatter to quantized tables with every policy for duplicates", "[quantized][scatter]") {
  for (const std::size_t width : {1u, 4u, 33u}) scatter_by_every_policy<quantization::rowwise_int8>(width);
  scatter_by_every_policy<quantization::mxfp8>(64);
}

// The spaces of a table and of the numbers of a faulty batch, and the path between them.
template <class TableSpace, class ValueSpace, class Path>
struct fault_way {
  using table_space = TableSpace;
  using value_space = ValueSpace;
  using path = Path;
};
using device = ferry::device_space;
using mapped = ferry::mapped_space;
using pageable = ferry::pageable_space;
using faulty_ways = std::tuple<
    fault_way<device, device, ferry::path::direct>, fault_way<device, pageable, ferry::path::staged>,
    fault_way<mapped, pageable, ferry::path::direct>, fault_way<mapped, device, ferry::path::cooperative>,
    fault_way<mapped, device, ferry::path::staged>, fault_way<pageable, device, ferry::path::ordered>,
    fault_way<pageable, pageable, ferry::path::staged>,
    fault_way<pageable, pageable, ferry::path::automatic>>;
TEMPLATE_LIST_TEST_CASE("a faulty batch leaves a quantized table untouched", "[quantized][scatter][errors]",
                        faulty_ways) {
  using space = typename TestType::table_space;
  using values_in = typename TestType::value_space;
  namespace duplicates = ferry::duplicates;
  const typename TestType::path path;
  constexpr bool chooses = std::is_same_v<decltype(path), const ferry::path::automatic> ||
                           std::is_same_v<decltype(path), const ferry::path::staged>;
  if (!chooses && !direct_runs<space, values_in>()) SKIP("this device has no access to pageable memory");
  // Records where numbers come from a device, else codes and scales of two arrays.
  constexpr bool is_device = std::is_same_v<values_in, device>;
  using Q = std::conditional_t<is_device, quantization::rowwise_int8, quantization::mxfp8>;
  auto random = generator(113);
  const std::size_t rows = 61, width = 32, n = 40;
  const auto before = random_codes<Q>(random, rows, width);
  const auto batch = numbers_for<float>(random, n * width);
  const exec_space exec;
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto source = make<values_in>("values", n, width, batch);
  CAPTURE(Q::name, space::name, values_in::name, path.name);
  auto table = table_of<Q, space>(before);
  auto bad = unique_indices<std::int32_t>(random, n, rows);
  bad[7] = 61;
  bad[30] = -4;
  const auto refuse = [&](const auto& ids, auto policy) {
    CHECK_THROWS_MATCHES(ferry::scatter(exec, table, ids, source, path, policy).wait(), ferry::out_of_range,
                         says("ferry::scatter: 2 of 40 indices are outside of 'weights' [61 x 32]"));
  };
  refuse(bad, duplicates::last{});
  refuse(bad, duplicates::assume_unique{});
  refuse(ferry::make_plan(exec, bad, rows), duplicates::first{});
  auto twice = unique_indices<std::int32_t>(random, n, rows);
  twice[9] = twice[21];
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, twice, source, path, duplicates::reject{}).wait(),
                       ferry::invalid_argument, says("ferry::scatter: 1 row of 'weights' [61 x 32]"));
  CHECK(same(bytes_of(table), before));

  // If bad indices are skipped or clamped, the others are written, on any path: an index becomes a row before.
  if constexpr (!is_device) {
    ferry::scatter(exec, table, bad, source, path, ferry::bounds::skip{}, duplicates::sum{}).wait();
    const auto skipped = scattered_codes<Q>(before, bad, batch, "duplicates::sum");
    CHECK(same(bytes_of(table), skipped));
    ferry::scatter(exec, table, bad, source, path, ferry::bounds::clamp{}).wait();
    CHECK(same(bytes_of(table), scattered_codes<Q>(skipped, bad, batch, "duplicates::last", on_bad::clamp)));
  }
}

TEST_CASE("a scatter that nobody waits for, then a gather on the same instance", "[quantized][int8]") {
  using Q = quantization::rowwise_int8;
  auto random = generator(114);
  const std::size_t rows = 2000, width = 64, n = 1500;
  const exec_space exec;
  auto bytes = random_codes<Q>(random, rows, width);
  auto table = table_of<Q, ferry::mapped_space>(bytes);
  for (int round = 0; round < 5; ++round) {
    const auto batch = numbers_for<float>(random, n * width);
    const auto ids = indices<std::int32_t>(random, n, rows);
    const auto source = make<ferry::device_space>("values", n, width, batch);
    ferry::tensor<float, ferry::device_space> out("batch", n, width);
    {
      const auto plan = ferry::make_plan(exec, ids, rows);
      ferry::scatter(exec, table, plan, source, ferry::duplicates::mean{}).detach();
      ferry::gather(exec, table, plan, out).wait();
    }
    bytes = scattered_codes<Q>(bytes, ids, batch, "duplicates::mean");
    CHECK(same_values(take(out), gathered(decoded<Q>(bytes), width, ids, std::vector<float>(n * width))));
  }
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
    check_lanes<quantization::rowwise_int8>(random, width);
  }
  check_lanes<quantization::rowwise_int8>(random, 8);
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

}  // namespace ferry_test::quantized_scatter_test
