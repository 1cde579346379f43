// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
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

  /// The ends of two ranges joined. Keeps those that are not finite.
  /// @{
  template <class Number>
  KOKKOS_FORCEINLINE_FUNCTION static Number lesser(Number a, Number b) {
    KOKKOS_IF_ON_DEVICE(
        (Number least = 0; if (ferry::device_backend<Number>::lesser(a, b, least)) return least;))
    return b < a ? b : a;
  }
  template <class Number>
  KOKKOS_FORCEINLINE_FUNCTION static Number greater(Number a, Number b) {
    KOKKOS_IF_ON_DEVICE(
        (Number most = 0; if (ferry::device_backend<Number>::greater(a, b, most)) return most;))
    return b > a ? b : a;
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
