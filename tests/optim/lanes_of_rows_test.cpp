// SPDX-License-Identifier: Apache-2.0
#include "support/lanes_of_threads.hpp"
#include "support/random.hpp"

#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/optim/detail/update_row.hpp>
#include <ferry/optim/detail/update_whole_rows.hpp>
#include <ferry/optim/rules/adam.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

/// The kernel of steps on whole rows as a device's lanes run it, by a thread for each lane: against a host's walk over
/// the row.
namespace ferry_test::lanes_of_rows_test {

namespace kernels = ferry::kernels;
namespace optim = ferry::optim;

constexpr std::size_t rows = 5;

/// A table of 8-bit rows, the state of its rule, and a batch with the rows of a plan.
struct small_batch {
  std::size_t width, record_bytes;
  std::vector<std::byte> records;
  std::vector<float> first, second, gradients;
  std::vector<std::int64_t> unique_rows{0, 1, 3, 4}, segment_begin{0, 1, 4, 5, 65}, order;
  std::int64_t unique_count = 4;

  small_batch(std::mt19937_64& random, std::size_t columns)
      : width(columns), record_bytes((columns + 8 + 15) / 16 * 16), records(rows * record_bytes) {
    std::uniform_real_distribution<float> number(-1.0F, 1.0F);
    for (std::byte& byte : records) byte = static_cast<std::byte>(random() % 256);
    for (std::size_t row = 0; row < rows; ++row)
      kernels::rowwise_int8_code::of(-1.0F, number(random))
          .store(records.data() + row * record_bytes + width,
                 static_cast<std::int64_t>(record_bytes - width));
    for (std::size_t i = 0; i < rows * width; ++i) {
      first.push_back(number(random));
      second.push_back(number(random) + 1.0F);
    }
    const auto positions = static_cast<std::size_t>(segment_begin.back());
    for (std::size_t i = 0; i < positions * width; ++i) gradients.push_back(number(random));
    for (std::size_t p = positions; p-- > 0;) order.push_back(static_cast<std::int64_t>(p));
  }

  template <class Tile, bool Random>
  [[nodiscard]] auto kernel() {
    using update = optim::adam::update<float>;
    using weights = kernels::quantized_weights<ferry::quantization::rowwise_int8, Random>;
    using operation =
        kernels::update_row<weights, float, kernels::global_schedule<update>, kernels::transform_pack<>, 2>;
    using whole_rows = kernels::update_whole_rows<float, Tile, ferry::duplicates::sum, kernels::plan_rows,
                                                  float, operation, kernels::state_rows<float, 0>>;
    const auto w = static_cast<std::int64_t>(width);
    const kernels::plan_rows source{unique_rows.data(), segment_begin.data(), order.data(), &unique_count};
    return whole_rows{
        source,
        gradients.data(),
        w,
        w,
        unique_count,
        operation{
            weights{records.data(), static_cast<std::int64_t>(record_bytes), nullptr, 0, 1.0F, {17, 5, {}}},
            {{first.data(), second.data()}, w},
            {optim::adam{.lr = 0.1}.coefficients<float>(3)},
            {},
            nullptr},
        {}};
  }
  friend bool operator==(const small_batch& a, const small_batch& b) {
    const auto same = [](const std::vector<float>& left, const std::vector<float>& right) {
      return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
    };
    return a.records == b.records && same(a.first, b.first) && same(a.second, b.second);
  }
};

template <class Tile, bool Random>
void check_lanes(std::mt19937_64& random, std::size_t width, int least) {
  CAPTURE(Tile::elements, Random, width, least);
  const small_batch initial(random, width);
  small_batch by_host = initial, by_lanes = initial;
  const auto host_kernel = by_host.kernel<kernels::host_tile, Random>();
  for (std::int64_t item = 0; item < by_host.unique_count; ++item) host_kernel(item);
  run_by_lanes(by_lanes.kernel<Tile, Random>(), least);
  CHECK_FALSE(by_host == initial);
  CHECK(by_lanes.records == by_host.records);
  CHECK(by_lanes.first == by_host.first);
  CHECK(by_lanes.second == by_host.second);
}

TEST_CASE("lanes of 8-bit rows have the bits of a host's walk, with tiles of four and of eight",
          "[optim][quantized]") {
  auto random = generator(941);
  for (std::size_t width = 8; width <= 256; width += 8) {
    check_lanes<kernels::wide_packed_tile, false>(random, width, 1);
    check_lanes<kernels::wide_packed_tile, true>(random, width, 1);
    check_lanes<kernels::packed_tile, true>(random, width, 1);
  }
  // As many lanes as a wider table needs.
  for (const std::size_t width : {8, 40, 128})
    for (const int least : {32, 64}) {  // the warps of NVIDIA's devices and the waves of AMD's
      check_lanes<kernels::wide_packed_tile, false>(random, width, least);
      check_lanes<kernels::packed_tile, false>(random, width, least);
    }
  for (const std::size_t width : {1, 3, 4, 12, 130, 260, 300}) {
    check_lanes<kernels::single_tile, false>(random, width, 1);
    if (width % 4 == 0) check_lanes<kernels::packed_tile, true>(random, width, 1);
  }
}

}  // namespace ferry_test::lanes_of_rows_test
