// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/finite.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The least and largest of a row's elements. One of both is not finite if an element is not.
struct row_range {
  using values = Kokkos::MinMaxScalar<float>;
  static constexpr float infinity = Kokkos::Experimental::infinity_v<float>;

  KOKKOS_FUNCTION static values nothing() {
    values empty;
    empty.min_val = infinity;
    empty.max_val = -infinity;
    return empty;
  }
  template <class Number>
  KOKKOS_FORCEINLINE_FUNCTION static void widen(values& range, Number value) {
    KOKKOS_IF_ON_DEVICE((
        // One instruction each.
        using backend = ferry::device_backend<Number>; float least = 0; float most = 0;
        if (backend::lesser(range.min_val, value, least) && backend::greater(range.max_val, value, most)) {
          range.min_val = least;
          range.max_val = most;
          return;
        }))
    const float low = low_of(value), high = high_of(value);
    range.min_val = low < range.min_val ? low : range.min_val;
    range.max_val = high > range.max_val ? high : range.max_val;
  }

  /// The range of the elements of both.
  template <class Range>
  KOKKOS_FORCEINLINE_FUNCTION static Range joined(Range range, const Range& addend) {
    KOKKOS_IF_ON_DEVICE((using backend = ferry::device_backend<Range>; float least = 0; float most = 0;
                         if (backend::lesser(range.min_val, addend.min_val, least) &&
                             backend::greater(range.max_val, addend.max_val, most)) {
                           range.min_val = least;
                           range.max_val = most;
                           return range;
                         }))
    range.min_val = addend.min_val < range.min_val ? addend.min_val : range.min_val;
    range.max_val = addend.max_val > range.max_val ? addend.max_val : range.max_val;
    return range;
  }
  /// Both ends in the halves of a word, for shuffles.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t bits_of(const values& range) {
    return std::uint64_t{detail::bit_cast<std::uint32_t>(range.max_val)} << 32 |
           detail::bit_cast<std::uint32_t>(range.min_val);
  }
  KOKKOS_FORCEINLINE_FUNCTION static values of_bits(std::uint64_t bits) {
    values range;
    range.min_val = detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
    range.max_val = detail::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32));
    return range;
  }
  /// @}

  /// Several ranges in parallel, so that a host's compiler can vectorise the comparisons.
  struct side_by_side {
    static constexpr int places = 16;
    float least[places], most[places];

    KOKKOS_FORCEINLINE_FUNCTION side_by_side() {
      for (int p = 0; p < places; ++p) {
        least[p] = infinity;
        most[p] = -infinity;
      }
    }
    /// Widens by values[0, count).
    template <class Value>
    KOKKOS_FORCEINLINE_FUNCTION void widen(const Value* values, std::int64_t count) {
      std::int64_t e = 0;
      for (; e + places <= count; e += places)
        for (int p = 0; p < places; ++p) widen_one(p, convert<float>(values[e + p]));
      for (; e < count; ++e) widen_one(0, convert<float>(values[e]));
    }
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION values whole() const {
      auto range = nothing();
      for (int p = 0; p < places; ++p) {
        range.min_val = least[p] < range.min_val ? least[p] : range.min_val;
        range.max_val = most[p] > range.max_val ? most[p] : range.max_val;
      }
      return range;
    }

   private:
    KOKKOS_FORCEINLINE_FUNCTION void widen_one(int p, float value) {
      const float low = low_of(value), high = high_of(value);
      least[p] = low < least[p] ? low : least[p];
      most[p] = high > most[p] ? high : most[p];
    }
  };

 private:
  // A value that is not finite, NaN included, makes the range's end infinite. Tested by bits, see finite.hpp.
  KOKKOS_FORCEINLINE_FUNCTION static float low_of(float value) {
    return detail::is_finite(value) ? value : -infinity;
  }
  KOKKOS_FORCEINLINE_FUNCTION static float high_of(float value) {
    return detail::is_finite(value) ? value : infinity;
  }
};

}  // namespace ferry::kernels
