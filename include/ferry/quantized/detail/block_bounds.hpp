// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>

namespace ferry::kernels {

/// The block_range of numbers. A device compares floats, a host integers that are ordered as the numbers are,
/// with NaN beyond infinity.
struct block_bounds {
  using values = Kokkos::MinMaxScalar<float>;

  KOKKOS_FUNCTION static values nothing() {
    values empty;
    empty.min_val = Kokkos::Experimental::infinity_v<float>;
    empty.max_val = -empty.min_val;
    return empty;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void widen(values& bounds, float value) {
    values single;
    single.min_val = single.max_val = value;
    bounds = joined(bounds, single);
  }
  /// The bounds of the numbers of both.
  template <class Values>
  KOKKOS_FORCEINLINE_FUNCTION static Values joined(Values bounds, const Values& addend) {
    KOKKOS_IF_ON_DEVICE((
        // One instruction each.
        using backend = ferry::device_backend<Values>; float least = 0; float most = 0;
        if (backend::lesser(bounds.min_val, addend.min_val, least) &&
            backend::greater(bounds.max_val, addend.max_val, most)) {
          bounds.min_val = least;
          bounds.max_val = most;
          return bounds;
        }))
    if (key_of(addend.min_val) < key_of(bounds.min_val)) bounds.min_val = addend.min_val;
    if (key_of(addend.max_val) > key_of(bounds.max_val)) bounds.max_val = addend.max_val;
    return bounds;
  }
  /// Both ends in the halves of a word, for shuffles.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t bits_of(const values& bounds) {
    return std::uint64_t{detail::bit_cast<std::uint32_t>(bounds.max_val)} << 32 |
           detail::bit_cast<std::uint32_t>(bounds.min_val);
  }
  KOKKOS_FORCEINLINE_FUNCTION static values of_bits(std::uint64_t bits) {
    values bounds;
    bounds.min_val = detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
    bounds.max_val = detail::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32));
    return bounds;
  }
  /// @}

  /// Several bounds in parallel, so that a host's compiler can vectorise the comparisons.
  class side_by_side {
   public:
    KOKKOS_FORCEINLINE_FUNCTION side_by_side() {
      for (int p = 0; p < buckets; ++p) {
        least_[p] = greatest;
        most_[p] = -greatest - 1;
      }
    }
    /// Widens by values[0, count).
    template <class Value>
    KOKKOS_FORCEINLINE_FUNCTION void widen(const Value* values, std::int64_t count) {
      std::int64_t e = 0;
      for (; e + buckets <= count; e += buckets)
        for (int p = 0; p < buckets; ++p) widen_one(p, convert<float>(values[e + p]));
      for (; e < count; ++e) widen_one(0, convert<float>(values[e]));
    }
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION values whole() const {
      std::int32_t least = least_[0], most = most_[0];
      for (int p = 1; p < buckets; ++p) {
        least = least_[p] < least ? least_[p] : least;
        most = most_[p] > most ? most_[p] : most;
      }
      values bounds;
      bounds.min_val = number_of(least);
      bounds.max_val = number_of(most);
      return bounds;
    }

   private:
    KOKKOS_FORCEINLINE_FUNCTION void widen_one(int p, float value) {
      const std::int32_t key = key_of(value);
      least_[p] = key < least_[p] ? key : least_[p];
      most_[p] = key > most_[p] ? key : most_[p];
    }

    static constexpr int buckets = 16;
    static constexpr std::int32_t greatest = std::numeric_limits<std::int32_t>::max();
    std::int32_t least_[buckets], most_[buckets];
  };

 private:
  KOKKOS_FORCEINLINE_FUNCTION static std::int32_t key_of(float value) {
    const auto bits = detail::bit_cast<std::int32_t>(value);
    return bits ^ (bits >> 31 & 0x7fffffff);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float number_of(std::int32_t key) {
    return detail::bit_cast<float>(key ^ (key >> 31 & 0x7fffffff));
  }
};

}  // namespace ferry::kernels
