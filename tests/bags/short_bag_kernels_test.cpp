// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"

#include <ferry/bags.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/quantized.hpp>
#include <ferry/runtime/detail/report.hpp>

/// The kernel by which a device pools bags, with a device's tiles, run by this thread: its path for short bags
/// and the other one, which give the same bits and reports.
namespace ferry_test::short_bag_kernels_test {

namespace kernels = ferry::kernels;

enum class tile { single, packed, wide };

/// How the offsets are given.
enum class layout { offsets, open_end, fixed };

template <class T, class Out, class Pooling, class Bounds, class Index, class Offset, class Weight = void>
class pool_case {
 public:
  static constexpr std::size_t rows = 90;
  static constexpr bool weighs = !std::is_void_v<Weight>;
  static constexpr bool in_records = std::is_same_v<T, std::byte>;

  pool_case(std::vector<std::size_t> offsets, std::size_t width, tile shape, unsigned seed)
      : offsets_(std::move(offsets)), width_(width), shape_(shape), random_(generator(seed)) {
    indices_ = indices<Index>(random_, offsets_.back(), rows);
    if constexpr (in_records)
      fill_records();
    else
      values_ = uneven_values<T>(random_, rows * width);
    weights_ = uneven_values<float>(random_, indices_.size());
  }
  /// The index at a position names no row.
  void spoil(std::size_t position) {
    indices_[position] = position % 2 == 0 ? static_cast<Index>(-1) : static_cast<Index>(rows);
    flawed_.push_back(position);
  }
  void check(layout how = layout::offsets) const {
    CAPTURE(offsets_, width_, shape_, how, Pooling::name, Bounds::name, flawed_);
    const pooled_bags<Out> expected = expectation();
    for (const std::int64_t short_length : {std::int64_t{0}, kernels::long_bags::least}) {
      CAPTURE(short_length);
      ferry::detail::index_report findings{};
      unsigned int raised = 0;
      const auto result = pooled_rows(short_length, how, {&findings, &raised});
      CHECK(same_bits(result.rows, expected.rows));
      if (Pooling::selects) CHECK(result.positions == expected.positions);
      if (!Bounds::reports) continue;
      CHECK(findings.out_of_range == flawed_.size());
      CHECK((raised != 0) == !flawed_.empty());
      if (!flawed_.empty())
        CHECK(findings.first_position == *std::min_element(flawed_.begin(), flawed_.end()));
    }
  }

 private:
  using source = kernels::index_rows<Index, Bounds>;
  using table_type = kernels::pooled_table<T>;
  using weight = std::conditional_t<weighs, float, void>;
  using chosen = std::conditional_t<Pooling::selects, std::int64_t, void>;

  /// Records with random codes. One row is constant, one has no range, and some have a number whose sum is
  /// rounded in double before it is rounded to float, so that one rounding gives other bits.
  void fill_records() {
    const std::size_t bytes = ferry::rowwise_int8_tensor<ferry::pinned_space>::record_bytes(width_);
    records_.assign(rows * bytes, std::byte{0});
    values_.resize(rows * width_);
    for (std::size_t row = 0; row < rows; ++row) {
      std::byte* const record = records_.data() + row * bytes;
      const bool rounds_twice = row % 10 == 6;
      const auto steps = static_cast<float>(1 + random_() % 1000);
      kernels::rowwise_int8_code code{steps * 0x1.345678p-16F, 0.3F - steps * 0x1.7p-9F};
      if (row == 20)
        code = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::quiet_NaN()};
      if (row == 40) code.scale = 0.0F;
      if (rounds_twice) code = {0x1.15b1e6p-30F, 1.0F};
      for (std::size_t c = 0; c < width_; ++c) {
        const auto number = static_cast<std::uint8_t>(rounds_twice ? 59 : random_() % 256);
        record[c] = static_cast<std::byte>(number);
        values_[row * width_ + c] = static_cast<float>(code.decode(number));
      }
      code.store(record + width_, static_cast<std::int64_t>(bytes - width_));
    }
  }

  [[nodiscard]] pooled_bags<Out> expectation() const {
    constexpr std::int64_t last_row = static_cast<std::int64_t>(rows) - 1;
    auto named = as_rows(indices_);
    for (const std::size_t position : flawed_) {
      const bool negative = position % 2 == 0 && std::is_signed_v<Index>;
      named[position] = std::is_same_v<Bounds, ferry::bounds::clamp> ? (negative ? 0 : last_row) : -1;
    }
    const auto pool = [&](const auto& weights) {
      return pooled<float, Out>(values_, width_, named, offsets_, Pooling::name, weights);
    };
    auto expected = [&] {
      if constexpr (weighs)
        return pool(weights_);
      else
        return pool(no_weights{});
    }();
    if (Bounds::reports)
      for (const std::size_t position : flawed_) {
        const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), position);
        const auto bag = static_cast<std::size_t>(after - offsets_.begin()) - 1;
        const auto place = static_cast<std::ptrdiff_t>(bag * width_);
        std::fill_n(expected.rows.begin() + place, width_, Out(77.0F));
        std::fill_n(expected.positions.begin() + place, width_, 77);
      }
    return expected;
  }

  [[nodiscard]] pooled_bags<Out> pooled_rows(std::int64_t short_length, layout how,
                                             ferry::detail::report_writer report) const {
    const std::size_t count = offsets_.size() - 1;
    auto plain = as_offsets<Offset>(offsets_);
    if (how == layout::open_end) plain.back() = static_cast<Offset>(0);  // which nobody may read
    const auto w = static_cast<std::int64_t>(width_);
    const auto positions = static_cast<std::int64_t>(indices_.size());
    const auto hotness = static_cast<std::int64_t>(offsets_[1]);
    const kernels::bag_list<Offset> bags{how == layout::fixed ? nullptr : plain.data(),
                                         hotness,
                                         static_cast<std::int64_t>(count),
                                         positions,
                                         how == layout::open_end,
                                         !std::is_same_v<Bounds, ferry::bounds::unchecked>,
                                         report};
    const std::int64_t elements = shape_ == tile::single ? 1 : shape_ == tile::packed ? 4 : 8;
    // Aligned copies, for packets.
    const auto table = [&] {
      if constexpr (in_records)
        return make<ferry::pinned_space>("table", rows, records_.size() / rows, records_);
      else
        return make<ferry::pinned_space>("table", rows, width_, values_);
    }();
    ferry::tensor<Out, ferry::pinned_space> out("out", count, width_);
    put(out, std::vector<Out>(count * width_, Out(77.0F)));
    const weight* factors = nullptr;
    if constexpr (weighs) factors = weights_.data();
    std::vector<std::int64_t> maxima(count * width_, 77);
    chosen* places = nullptr;
    if constexpr (Pooling::selects) places = maxima.data();
    kernels::pool_rows<float, Pooling, table_type, source, Offset, weight, Out, chosen> pool{
        {table_type::of(table.data(), static_cast<std::int64_t>(table.width())),
         {indices_.data(), static_cast<std::int64_t>(rows), report},
         factors,
         w,
         positions},
        bags,
        out.data(),
        w,
        places,
        w,
        ferry::detail::fast_divisor(w / elements),
        shape_ == tile::packed,
        shape_ == tile::wide,
        Bounds::reports,
        true,
        nullptr};
    pool.short_length = short_length;
    CHECK(pool.terms.allows_few());
    for (std::int64_t i = bags.bags * (w / elements); i-- > 0;) pool(i);
    return {take(out), maxima};
  }

  std::vector<std::size_t> offsets_;
  std::size_t width_;
  tile shape_;
  std::mt19937_64 random_;
  std::vector<Index> indices_;
  std::vector<std::byte> records_;
  std::vector<std::conditional_t<in_records, float, T>> values_;
  std::vector<float> weights_;
  std::vector<std::size_t> flawed_;
};

/// Bags of 0 to 9 positions, and some at the limit of long ones.
std::vector<std::size_t> short_offsets(std::mt19937_64& random) {
  std::vector<std::size_t> offsets{0};
  for (const std::size_t length : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1023, 1024, 1})
    offsets.push_back(offsets.back() + length);
  for (int bag = 0; bag < 20; ++bag) offsets.push_back(offsets.back() + random() % 14);
  offsets.push_back(offsets.back() + 5);
  return offsets;
}

template <class T, class Out, class Pooling, class Bounds, class Index, class Offset, class Weight = void>
void check_all(unsigned seed) {
  auto random = generator(seed);
  const auto offsets = short_offsets(random);
  std::vector<std::size_t> equal;
  for (std::size_t bag = 0; bag < 9; ++bag) equal.push_back(bag * 10);
  const auto each_shape = [&](const auto& visit) {
    visit(3, tile::single);
    visit(20, tile::packed);
    if constexpr (sizeof(T) <= 2) visit(24, tile::wide);
  };
  each_shape([&](std::size_t width, tile shape) {
    using one_case = pool_case<T, Out, Pooling, Bounds, Index, Offset, Weight>;
    one_case(offsets, width, shape, ++seed).check();
    one_case(offsets, width, shape, ++seed).check(layout::open_end);
    one_case(equal, width, shape, ++seed).check(layout::fixed);
    if constexpr (!std::is_same_v<Bounds, ferry::bounds::unchecked>) {
      // The last position of the batch, the first one, and one of the longest bag's.
      for (const std::size_t position : {offsets.back() - 1, std::size_t{0}, offsets[13] - 2}) {
        one_case flawed(offsets, width, shape, ++seed);
        flawed.spoil(position);
        flawed.check();
      }
      one_case many(offsets, width, shape, ++seed);
      for (std::size_t p = 0; p < offsets.back(); p += 1 + random() % 60) many.spoil(p);
      many.check();
    }
  });
}

TEST_CASE("a bag is short if its positions are in the batch") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = -most - 1;
  const kernels::bag_list<std::int64_t> bags{nullptr, 1, 1, 10, false, true, {}};
  const auto has_few = [&](std::int64_t begin, std::int64_t end) {
    return bags.has_few({begin, end, true}, 1024);
  };
  CHECK(has_few(0, 0));
  CHECK(has_few(10, 10));
  CHECK(has_few(0, 10));
  CHECK_FALSE(has_few(0, 11));
  CHECK_FALSE(has_few(-1, 3));
  CHECK_FALSE(has_few(3, 2));
  CHECK_FALSE(has_few(most, least));  // the difference is 1
  CHECK_FALSE(has_few(most, least + 3));
  CHECK_FALSE(has_few(least, most));
}

TEST_CASE("a device's kernel pools short bags") {
  using namespace ferry;
  check_all<float, float, pooling::sum, bounds::check, std::int64_t, std::int64_t>(10);
  check_all<float, float, pooling::mean, bounds::check, std::int32_t, std::int32_t>(200);
  check_all<float, float, pooling::sum, bounds::unchecked, std::int64_t, std::int32_t>(400);
  check_all<float, float, pooling::mean, bounds::skip, std::uint32_t, std::uint64_t>(600);
  check_all<float, float, pooling::sum, bounds::clamp, std::int64_t, std::int64_t>(800);
  check_all<float, float, pooling::mean, bounds::check, std::uint64_t, std::uint32_t, float>(1000);
  check_all<half_t, half_t, pooling::sum, bounds::check, std::int64_t, std::int64_t>(1200);
  check_all<half_t, float, pooling::mean, bounds::skip, std::int64_t, std::int64_t>(1400);
  check_all<bhalf_t, bhalf_t, pooling::mean, bounds::clamp, std::int32_t, std::int64_t>(1600);
  check_all<half_t, half_t, pooling::sum, bounds::skip, std::int64_t, std::int64_t, float>(1800);
  check_all<float, float, pooling::max, bounds::check, std::int64_t, std::int64_t>(2000);
  check_all<float, float, pooling::max, bounds::skip, std::int32_t, std::int64_t>(2200);
}

TEST_CASE("a device's kernel pools short bags of 8-bit records") {
  using namespace ferry;
  check_all<std::byte, float, pooling::sum, bounds::check, std::int64_t, std::int64_t>(2400);
  check_all<std::byte, float, pooling::mean, bounds::skip, std::int32_t, std::int64_t>(2600);
  check_all<std::byte, float, pooling::sum, bounds::unchecked, std::int64_t, std::int32_t>(2800);
  check_all<std::byte, float, pooling::sum, bounds::check, std::uint32_t, std::int64_t, float>(3000);
}

TEST_CASE("short bags of tables with too many rows, or too wide ones, have no path of their own") {
  using source = kernels::index_rows<std::int64_t, ferry::bounds::check>;
  using terms = kernels::bag_terms<float, false, kernels::pooled_table<float>, source, void, void>;
  const auto allows = [](std::int64_t rows, std::int64_t stride) {
    return terms{kernels::pooled_table<float>::of(nullptr, stride), {nullptr, rows, {}}, nullptr, 4, 10}
        .allows_few();
  };
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  CHECK(allows(most, 128));
  CHECK_FALSE(allows(most + 1, 128));
  CHECK(allows(10, most / 4));
  CHECK_FALSE(allows(10, most / 4 + 1));
  using coded_terms = kernels::bag_terms<float, false, kernels::pooled_table<std::byte>, source, void, void>;
  const auto allows_records = [](std::int64_t rows, std::int64_t bytes) {
    return coded_terms{
        kernels::pooled_table<std::byte>::of(nullptr, bytes), {nullptr, rows, {}}, nullptr, 4, 10}
        .allows_few();
  };
  CHECK(allows_records(most, 144));
  CHECK_FALSE(allows_records(most + 1, 144));
  CHECK(allows_records(10, most));
  CHECK_FALSE(allows_records(10, most + 1));
}

}  // namespace ferry_test::short_bag_kernels_test
