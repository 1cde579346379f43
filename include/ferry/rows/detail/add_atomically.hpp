// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// *target += value for a number of 8 or 16 bits: exchanges the word of 32 bits that holds it. Words do not
/// straddle allocations.
template <class T>
KOKKOS_FUNCTION void add_in_word(T* target, const T& value) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2);
  using bits_type = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  const auto byte = static_cast<int>(reinterpret_cast<std::uintptr_t>(target) & 3);
  auto* word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(target) - byte);
  const int shift = byte * 8;
  const std::uint32_t mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
  for (std::uint32_t content = Kokkos::atomic_load(word);;) {
    using wide = accumulation_t<T>;
    const T before = ferry::detail::bit_cast<T>(static_cast<bits_type>(content >> shift));
    const T sum = convert<T>(convert<wide>(before) + convert<wide>(value));
    const std::uint32_t next =
        (content & ~mask) | static_cast<std::uint32_t>(ferry::detail::bit_cast<bits_type>(sum)) << shift;
    const std::uint32_t previous = Kokkos::atomic_compare_exchange(word, content, next);
    if (previous == content) return;
    content = previous;
  }
}

/// target[0, N) += value[0, N), number by number at the latest: a sum that other threads see as a whole.
template <class Backend, class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void add_to_shared(T* target, const T (&value)[N]) {
  if constexpr (N > 4 && N % 4 == 0) {
    for (int first = 0; first < N; first += 4) {
      const T part[4] = {value[first], value[first + 1], value[first + 2], value[first + 3]};
      add_to_shared<Backend>(target + first, part);
    }
  } else if constexpr (is_extended_number<T>) {
    constexpr bool brain = std::is_same_v<T, bhalf_t>;
    std::uint16_t bits[N];
    for (int e = 0; e < N; ++e) bits[e] = value[e].bits();
    auto* halves = reinterpret_cast<std::uint16_t*>(target);
    if constexpr (N == 4)
      if (Backend::template add_packet<brain>(halves, bits)) return;
    for (int e = 0; e < N; ++e)
      if (!Backend::template add_one<brain>(halves + e, bits[e])) add_in_word(target + e, value[e]);
  } else {
    if constexpr (std::is_same_v<T, float> && N == 4)
      if (Backend::add_packet(target, value)) return;
    for (int e = 0; e < N; ++e)
      if constexpr (sizeof(T) < 4)
        add_in_word(target + e, value[e]);
      else
        Kokkos::atomic_add(target + e, value[e]);
  }
}

/// table[row] += factor * value on a device, for positions of which several may name the row.
template <class Backend, class T, class Factor>
struct add_atomically : plain_operation {
  T* table;
  std::int64_t stride;
  Factor factor;
  const ferry::detail::index_report* refusal;  ///< as that of update_row

  KOKKOS_FUNCTION add_atomically(T* data, std::int64_t step, const Factor& scale,
                                 const ferry::detail::index_report* findings)
      : table(data), stride(step), factor(scale), refusal(findings) {}

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return refusal != nullptr && refusal->nonfinite != 0;
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const held<Tile, Compute>&, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int) const {
    T added[Tile::elements];
    for (int e = 0; e < Tile::elements; ++e) added[e] = convert<T>(factor(value[e]));
    add_to_shared<Backend>(table + row * stride + column, added);
  }
};

/// The factors of add_atomically.
/// @{
struct unscaled {
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION const Compute& operator()(const Compute& value) const {
    return value;
  }
};
template <class Compute>
struct scaled {
  Compute factor;
  KOKKOS_FORCEINLINE_FUNCTION Compute operator()(const Compute& value) const { return factor * value; }
};
/// @}

/// True if each item of a source is a position of the batch, so that several may name one row.
template <class Source>
inline constexpr bool by_positions = requires {
  requires Source::in_order;
};

}  // namespace ferry::kernels
