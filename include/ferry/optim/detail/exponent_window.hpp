// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/number.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::optim {

/// The answer whether exponents of floats are in windows, Least to Least + 127, and other conditions hold.
/// The answers for several numbers are joined by both(): for a device half an instruction for each window.
class window_answer {
 public:
  KOKKOS_FORCEINLINE_FUNCTION window_answer(bool condition) : condition_(condition) {}
  /// The distance of the exponent from the least one is 128 or more above the window and, by the borrow,
  /// below it: bit 30 is set.
  KOKKOS_FORCEINLINE_FUNCTION static window_answer of_float(float x, int least) {
    window_answer answer(true);
    answer.distances_ =
        ferry::detail::bit_cast<std::uint32_t>(x) - (static_cast<std::uint32_t>(least + 127) << 23);
    return answer;
  }
  KOKKOS_FORCEINLINE_FUNCTION explicit operator bool() const {
    return optim::both((distances_ & 0x40000000u) == 0, condition_);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION friend window_answer both(const window_answer& a,
                                                                      const window_answer& b) {
    window_answer answer(optim::both(a.condition_, b.condition_));
    answer.distances_ = a.distances_ | b.distances_;
    return answer;
  }

 private:
  std::uint32_t distances_ = 0;
  bool condition_;
};

/// True if 2^Least <= |x| < 2^(Least + 128), for Least from -126 to -1: a bool or what converts to one.
template <int Least, class Number>
[[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION auto in_window(const Number& x) {
  static_assert(Least >= -126 && Least <= -1, "ferry: no float has such exponents");
  if constexpr (ferry::detail::is_float_number<Number>) {
    return window_answer::of_float(static_cast<float>(x), Least);
  } else {
    constexpr double least = ferry::detail::bit_cast<double>(static_cast<std::uint64_t>(Least + 1023) << 52);
    return both(magnitude(x) >= Number(least), magnitude(x) < Number(least * 0x1p128));
  }
}

}  // namespace ferry::optim
