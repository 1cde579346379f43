// SPDX-License-Identifier: Apache-2.0
#include "support/random.hpp"

#include <ferry/optim/detail/exponent_window.hpp>

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

/// Windows of exponents against comparisons of magnitudes.
namespace ferry_test::exponent_window_test {

namespace {

namespace optim = ferry::optim;

/// All exponents with the ends of their mantissas, of both signs: zeros, subnormal numbers, infinities and NaN among them.
std::vector<float> numbers() {
  std::vector<float> floats;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (const std::uint32_t mantissa : {0u, 1u, 0x400000u, 0x7fffffu})
      for (const std::uint32_t sign : {0u, 1u})
        floats.push_back(std::bit_cast<float>(sign << 31 | exponent << 23 | mantissa));
  return floats;
}

template <int Least>
bool is_inside(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  return magnitude >= std::ldexp(1.0, Least) && magnitude < std::ldexp(1.0, Least + 128);
}

template <int Least>
void agrees_with_comparisons() {
  CAPTURE(Least);
  for (const float x : numbers()) {
    CAPTURE(x);
    CHECK(static_cast<bool>(optim::in_window<Least>(x)) == is_inside<Least>(x));
    CHECK(static_cast<bool>(optim::in_window<Least>(static_cast<double>(x))) == is_inside<Least>(x));
  }
}

}  // namespace

TEST_CASE("a window of exponents holds the numbers between its ends", "[optim]") {
  agrees_with_comparisons<-126>();
  agrees_with_comparisons<-92>();
  agrees_with_comparisons<-64>();
  agrees_with_comparisons<-20>();
  agrees_with_comparisons<-1>();
}

TEST_CASE("answers for several windows are joined", "[optim]") {
  using optim::both, optim::in_window;
  auto random = generator(223);
  const auto floats = numbers();
  for (int trial = 0; trial < 20000; ++trial) {
    const float a = floats[random() % floats.size()], b = floats[random() % floats.size()],
                c = floats[random() % floats.size()];
    const bool condition = random() % 4 != 0;
    const auto joined = both(both(in_window<-64>(a), in_window<-84>(b)), both(in_window<-20>(c), condition));
    CHECK(static_cast<bool>(joined) ==
          (is_inside<-64>(a) && is_inside<-84>(b) && is_inside<-20>(c) && condition));
  }
}

}  // namespace ferry_test::exponent_window_test
