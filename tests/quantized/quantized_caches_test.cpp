// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "quantized.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/cache/detail/cached_codes.hpp>
#include <ferry/plan/detail/index_kernels.hpp>

/// Caches before quantized tables against numbers that plain loops decode.
namespace ferry_test::quantized_caches_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;

/// The gathers of some batches, between which rows are exchanged.
template <class Out, class Hot>
void gather_batches(std::mt19937_64& random, const Hot& hot, const std::vector<float>& numbers) {
  const exec_space exec;
  const std::size_t rows = hot.rows(), width = hot.width();
  const auto rounded = rounded_once<Out>(numbers);
  for (int batch = 0; batch < 6; ++batch) {
    const std::size_t n = batch == 3 ? 0 : 1 + random() % 70;
    CAPTURE(batch, n);
    const auto ids = skewed<std::int64_t>(random, n, rows, 10, 7);
    const auto poison = values<Out>(random, n * width);
    const auto expected = gathered(rounded, width, ids, poison);
    const auto check = [&](const auto& act) {
      auto out = make<ferry::device_space>("batch", n, width, poison);
      act(out);
      CHECK(same_values(take(out), expected));
    };
    check([&](auto& out) { ferry::gather(exec, hot, ids, out).wait(); });
    const auto plan = ferry::make_plan(exec, ids, hot);
    check([&](auto& out) { ferry::gather(exec, hot, plan, out).wait(); });
    check([&](auto& out) { ferry::gather_unique(exec, hot, ids, out).wait(); });
    check([&](auto& out) { ferry::gather(exec, hot, ids, out, ferry::path::ordered{}).wait(); });
    check([&](auto& out) { ferry::gather(exec, hot, plan, out, ferry::path::ordered{}).wait(); });
    const std::vector<std::uint32_t> narrow(ids.begin(), ids.end());
    check([&](auto& out) {
      ferry::gather(exec, hot, narrow, out, ferry::path::direct{}, ferry::bounds::unchecked{}).wait();
    });
    auto mapped = make<ferry::mapped_space>("batch", n, width, poison);
    ferry::gather(exec, hot, plan, mapped).wait();
    CHECK(same_values(take(mapped), expected));
    auto some = ids;
    for (std::size_t p = 0; p < n; p += 4) some[p] = p % 8 == 0 ? -1 : static_cast<std::int64_t>(rows);
    std::vector<Out> with_gaps = poison;
    for (std::size_t p = 0; p < n; ++p)
      if (p % 4 != 0)
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(p * width), width,
                    with_gaps.begin() + static_cast<std::ptrdiff_t>(p * width));
    auto out = make<ferry::device_space>("batch", n, width, poison);
    ferry::gather(exec, hot, some, out, ferry::bounds::skip{}).wait();
    CHECK(same_values(take(out), with_gaps));
    auto reported = make<ferry::device_space>("batch", n, width, poison);
    const auto text = said<ferry::out_of_range>([&] { ferry::gather(exec, hot, some, reported).wait(); });
    CHECK(has(text, n == 0 ? "" : std::to_string((n + 3) / 4) + " of " + std::to_string(n)));
    CHECK(same_values(take(reported), with_gaps));
  }
}

template <class Q, class Out, class Space, class ScaleSpace>
void compare_caches(std::uint64_t salt, std::size_t width) {
  auto random = generator(salt);
  const std::size_t rows = 90;
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto numbers = decoded<Q>(bytes);
  for (const std::size_t cached : cache_sizes(rows)) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, width, cached);
    auto table = table_of<Q, Space, ScaleSpace>(bytes);
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = 2});
    REQUIRE(hot.width() == width);
    gather_batches<Out>(random, hot, numbers);
    if (cached > 1) CHECK(hot.statistics().hits > 0);
    const std::size_t scale_bytes = ScaleSpace::is_host_accessible ? table.row_bytes() : code_bytes<Q>(width);
    CHECK(hot.statistics().bytes_saved == hot.statistics().hits * scale_bytes);
  }
}

/// The rows of places, as a device's threads decode them: in memory that begins anywhere.
template <class Q, class Out>
void decode_as_device(std::uint64_t salt, std::size_t width) {
  using memory_type = ferry::kernels::codes_in_cache<Q>;
  using source = ferry::kernels::listed_rows;
  auto random = generator(salt);
  const std::size_t rows = 9, slots = 4, n = 30;
  const auto bytes = random_codes<Q>(random, rows, width);
  const auto numbers = decoded<Q, Out>(bytes);
  const auto scales = elements_of<typename Q::scale_type>(bytes.scales);
  const std::size_t row_bytes = code_bytes<Q>(width), blocks = scale_count<Q>(width);
  const std::vector<std::size_t> slot_rows{7, 2, 0, 5};
  for (const std::size_t cold : {0u, 1u, 4u, 8u})
    for (const std::size_t hot : {0u, 2u, 4u, 13u})
      for (const bool caches_scales : {false, true}) {
        CAPTURE(Q::name, width, cold, hot, caches_scales);
        alignas(16) static unsigned char cold_memory[1 << 14], hot_memory[1 << 14];
        alignas(16) static unsigned char target[1 << 17];
        std::copy(bytes.codes.begin(), bytes.codes.end(), cold_memory + 16 + cold);
        std::vector<typename Q::scale_type> hot_scales(slots * blocks);
        for (std::size_t s = 0; s < slots; ++s) {
          std::copy_n(bytes.codes.data() + slot_rows[s] * row_bytes, row_bytes,
                      hot_memory + 16 + hot + s * row_bytes);
          if (!scales.empty())
            std::copy_n(scales.data() + slot_rows[s] * blocks, blocks, hot_scales.data() + s * blocks);
        }
        memory_type memory{};
        memory.row_bytes = static_cast<std::int64_t>(row_bytes);
        memory.blocks = static_cast<std::int64_t>(blocks);
        memory.tensor_scale = bytes.tensor_scale;
        memory.locations = {4};
        memory.cold_codes = reinterpret_cast<const std::byte*>(cold_memory + 16 + cold);
        memory.hot_codes = reinterpret_cast<const std::byte*>(hot_memory + 16 + hot);
        const auto memory_from = [&](const std::byte* begin, std::size_t count) {
          const auto address = reinterpret_cast<std::uintptr_t>(begin);
          return ferry::kernels::readable_memory{address, address + count * row_bytes};
        };
        memory.cold_memory = memory_from(memory.cold_codes, rows);
        memory.hot_memory = memory_from(memory.hot_codes, slots);
        memory.cold_scales = scales.data();
        if (caches_scales) memory.hot_scales = hot_scales.data();
        const auto ids = indices<std::int64_t>(random, n, rows);
        std::vector<std::int64_t> places = ids;
        for (auto& place : places)
          for (std::size_t s = 0; s < slots; ++s)
            if (static_cast<std::size_t>(place) == slot_rows[s] && random() % 4 != 0)
              place += static_cast<std::int64_t>(s + 1) << 4;
        const auto poison = values<Out>(random, n * width);
        auto* const out = reinterpret_cast<Out*>(target);
        check_decode(memory, source{places.data()}, n, width, out, poison,
                     gathered(numbers, width, ids, poison));
      }
}

TEST_CASE("threads of a device decode rows of slots and of host memory", "[cache][quantized]") {
  decode_as_device<quantization::mxfp8, ferry::bhalf_t>(841, 96);
  decode_as_device<quantization::nvfp4, float>(842, 48);
  decode_as_device<by_rows, ferry::half_t>(843, 33);
  decode_as_device<six_bits, float>(845, 32);
}

TEST_CASE("quantized rows behind a cache have the values of the table", "[cache][quantized]") {
  using ferry::device_space, ferry::mapped_space, ferry::pinned_space;
  compare_caches<quantization::mxfp8, ferry::bhalf_t, pinned_space, device_space>(802, 96);
  compare_caches<quantization::nvfp4, float, mapped_space, pinned_space>(804, 48);
  compare_caches<by_rows, float, mapped_space, mapped_space>(806, 7);
  compare_caches<six_bits, float, mapped_space, device_space>(807, 32);
}

TEST_CASE("caches of chosen quantized rows, moved tables and new factors", "[cache][quantized]") {
  using q = quantization::nvfp4;
  auto random = generator(811);
  const std::size_t rows = 60, width = 32;
  auto bytes = random_codes<q>(random, rows, width);
  auto table = table_of<q, ferry::mapped_space>(bytes);
  {
    ferry::cached_table fixed(table, ferry::cache::fixed({3, 59, 0}));
    CHECK(cached_rows(fixed) == std::vector<std::int64_t>{0, 3, 59});
    gather_batches<float>(random, fixed, decoded<q>(bytes));
  }
  ferry::cached_table hot(table, ferry::cache::first{.rows = 9});
  gather_batches<float>(random, hot, decoded<q>(bytes));
  hot.resize(30);
  gather_batches<float>(random, hot, decoded<q>(bytes));
  auto moved = std::move(table);
  moved.set_scale(0.125f);
  bytes.tensor_scale = 0.125f;
  gather_batches<float>(random, hot, decoded<q>(bytes));
  auto hot_elsewhere = std::move(hot);
  gather_batches<float>(random, hot_elsewhere, decoded<q>(bytes));
}

TEST_CASE("gather_bags pools quantized rows behind a cache", "[cache][quantized]") {
  using q = quantization::mxfp8;
  auto random = generator(821);
  const exec_space exec;
  const std::size_t rows = 70, width = 64, bags = 11;
  const auto bytes = random_codes<q>(random, rows, width);
  const auto numbers = decoded<q>(bytes);
  auto table = table_of<q, ferry::mapped_space>(bytes);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 20, .refresh = 1});
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<std::int64_t> offsets{0}, ids;
    for (std::size_t b = 0; b < bags; ++b) {
      const auto more = skewed<std::int64_t>(random, random() % 12, rows, 5, 6);
      ids.insert(ids.end(), more.begin(), more.end());
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
    }
    std::vector<float> sums(bags * width);
    for (std::size_t b = 0; b < bags; ++b)
      for (auto p = static_cast<std::size_t>(offsets[b]); p < static_cast<std::size_t>(offsets[b + 1]); ++p)
        for (std::size_t c = 0; c < width; ++c)
          sums[b * width + c] += numbers[static_cast<std::size_t>(ids[p]) * width + c];
    auto pooled = make<ferry::device_space>("pooled", bags, width, values<float>(random, bags * width));
    ferry::gather_bags(exec, hot, ids, offsets, pooled, ferry::pooling::sum{}).wait();
    CHECK(same_values(take(pooled), sums));
    auto planned = make<ferry::device_space>("pooled", bags, width, values<float>(random, bags * width));
    ferry::gather_bags(exec, hot, ferry::make_plan(exec, ids, hot), offsets, planned, ferry::pooling::sum{})
        .wait();
    CHECK(same_values(take(planned), sums));
  }
}

TEST_CASE("a cache keeps others from writing codes and scales", "[cache][quantized]") {
  using q = quantization::mxfp8;
  auto random = generator(831);
  const exec_space exec;
  const std::size_t rows = 20, width = 32;
  std::optional table(table_of<q, ferry::mapped_space>(random_codes<q>(random, rows, width)));
  const std::vector<int> ids{1, 2};
  auto two = make<ferry::device_space>("two", 2, width, values<float>(random, 2 * width));
  auto twin = table_of<q, ferry::mapped_space>(random_codes<q>(random, rows, width));
  {
    ferry::cached_table hot(*table, ferry::cache::first{.rows = 5});
    CHECK_THROWS_AS(ferry::scatter(exec, *table, ids, two).wait(), ferry::invalid_argument);
    CHECK_THROWS_AS(ferry::copy(exec, twin.scales(), table->scales()).wait(), ferry::invalid_argument);
    CHECK_THROWS_AS(ferry::cached_table(*table, ferry::cache::first{.rows = 5}), ferry::invalid_argument);
    CHECK_THROWS_AS(ferry::cached_table(table->scales(), ferry::cache::first{.rows = 5}),
                    ferry::invalid_argument);
    ferry::gather(exec, *table, ids, two).wait();  // reads are allowed
    auto narrow = make<ferry::device_space>("narrow", 2, width - 1, values<float>(random, 2 * (width - 1)));
    CHECK_THROWS_AS(ferry::gather(exec, hot, ids, narrow).wait(), ferry::invalid_argument);
  }
  {  // a table of which one part has a cache gets none
    const ferry::cached_table scales(table->scales(), ferry::cache::first{.rows = 5});
    CHECK_THROWS_AS(ferry::cached_table(*table, ferry::cache::first{.rows = 5}), ferry::invalid_argument);
  }
  ferry::scatter(exec, *table, ids, two).wait();  // afterwards it is writable again
  ferry::cached_table hot(*table, ferry::cache::first{.rows = 5});
  table.reset();
  CHECK_THROWS_AS(ferry::gather(exec, hot, ids, two).wait(), ferry::invalid_argument);
}

}  // namespace ferry_test::quantized_caches_test
