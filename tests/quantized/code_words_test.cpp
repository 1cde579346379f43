// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"

namespace ferry_test::code_words_test {

namespace quantization = ferry::quantization;

/// Words of codes whose values by decode_word differ from those of decode.
template <class Q>
struct wrong_words {
  using step_type = typename Q::step_type;
  static constexpr int numbers = 32 / Q::code_bits;

  std::uint32_t factor;  ///< odd, so that words of neighbouring numbers have all codes in all places
  step_type step;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::uint32_t word = static_cast<std::uint32_t>(i) * factor;
    float values[numbers];
    if (!Q::decode_word(word, step, values)) return;
    bool differs = false;
    for (int k = 0; k < numbers; ++k) {
      const float expected = Q::decode(word >> (k * Q::code_bits) & ((1u << Q::code_bits) - 1u), step);
      const auto bits = ferry::detail::bit_cast<std::uint32_t>(values[k]);
      const bool is_number = (bits & 0x7fffffffu) <= 0x7f800000u;
      const bool expects_number = expected == expected;
      differs = differs || is_number != expects_number ||
                (is_number && bits != ferry::detail::bit_cast<std::uint32_t>(expected));
    }
    if (differs) ++wrong;
  }
};

template <class Q>
void check_words() {
  for (const float step : {1.0f, 0.375f, 0x1p-127f, 0x1p-149f, 0x1p127f,
                           std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(Q::name, step);
    std::int64_t wrong = 0;
    Kokkos::parallel_reduce("ferry_test::words",
                            Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(0, 1 << 20),
                            wrong_words<Q>{2654435761u, step}, wrong);
    CHECK(wrong == 0);
  }
}

TEST_CASE("words of codes have the values of their codes", "[quantized]") {
  check_words<quantization::mxfp8>();
  check_words<quantization::mxfp8_e5m2>();
  check_words<quantization::mxfp4>();
  check_words<quantization::nvfp4>();
  check_words<quantization::e4m3>();
  check_words<quantization::per_row<quantization::e5m2>>();
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
    const ferry::kernels::rowwise_int8_code code{number(scale), number(offset)};
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

}  // namespace ferry_test::code_words_test
