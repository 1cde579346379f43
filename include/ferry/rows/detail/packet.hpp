// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ferry::kernels {

/// N elements moved by one load or store, if the addresses allow it.
template <class T, int N>
struct alignas(sizeof(T) * N) packet {
  T value[N];
};

#if defined(__SIZEOF_INT128__)
__extension__ using widest_integer = unsigned __int128;
#else
using widest_integer = std::uint64_t;
#endif
inline constexpr std::size_t widest_store = sizeof(widest_integer);

/// The integer type that stores a packet of `Bytes` bytes.
template <std::size_t Bytes>
using packet_integer = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t,
                       std::conditional_t<Bytes == 4, std::uint32_t,
                                          std::conditional_t<Bytes == 8, std::uint64_t, widest_integer>>>>;

/// target[0, N) = value, by as few stores as the packet's size allows. Little-endian. Elements are joined by
/// shifts: nvcc takes a memcpy of converted elements through memory.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void store_as_integers(T* target, const packet<T, N>& value) {
  constexpr std::size_t unit = sizeof(value) < widest_store ? sizeof(value) : widest_store;
  constexpr std::size_t units = sizeof(value) / unit;
  using integer = packet_integer<unit>;
  integer bits[units] = {};
  if constexpr (sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0) {
    using element = packet_integer<sizeof(T)>;
    constexpr int per_unit = static_cast<int>(unit / sizeof(T));
    for (int e = 0; e < N; ++e)
      bits[e / per_unit] |= static_cast<integer>(ferry::detail::bit_cast<element>(value.value[e]))
                            << (e % per_unit * static_cast<int>(8 * sizeof(T)));
  } else {
    std::memcpy(bits, &value, sizeof(value));
  }
  for (std::size_t u = 0; u < units; ++u) reinterpret_cast<integer*>(target)[u] = bits[u];
}

/// target[0, N) = value. nvcc splits aggregate stores of packets assembled in registers, and the assembler
/// does not always join them again; integer stores stay wide. Over a link, split stores took 27 ms for a step
/// that takes 5 ms (H200).
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void store_packet(T* target, const packet<T, N>& value) {
  KOKKOS_IF_ON_DEVICE((store_as_integers(target, value);))
  KOKKOS_IF_ON_HOST((std::memcpy(static_cast<void*>(target), &value, sizeof(value));))
}

/// The packet at an address, by as few loads as its size allows: the assembler does not join loads of 16-bit
/// numbers beyond 8 bytes. Little-endian.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION packet<T, N> load_as_integers(const T* source) {
  constexpr std::size_t unit = sizeof(packet<T, N>) < widest_store ? sizeof(packet<T, N>) : widest_store;
  using integer = packet_integer<unit>;
  using element = packet_integer<sizeof(T)>;
  constexpr int per_unit = static_cast<int>(unit / sizeof(T));
  packet<T, N> value;
  for (int first = 0; first < N; first += per_unit) {
    const integer bits = reinterpret_cast<const integer*>(source)[first / per_unit];
    for (int e = 0; e < per_unit; ++e)
      value.value[first + e] =
          ferry::detail::bit_cast<T>(static_cast<element>(bits >> (e * static_cast<int>(8 * sizeof(T)))));
  }
  return value;
}

/// The packet at an address that is a multiple of its size.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION packet<T, N> load_packet(const T* source) {
  if constexpr (sizeof(T) == 2 && N > 4) {
    KOKKOS_IF_ON_DEVICE((return load_as_integers<T, N>(source);))
  }
  KOKKOS_IF_ON_HOST(
      (packet<T, N> value; std::memcpy(static_cast<void*>(&value), source, sizeof(value)); return value;))
  KOKKOS_IF_ON_DEVICE((return *reinterpret_cast<const packet<T, N>*>(source);))
}

/// Rounds floats to numbers of 16 bits by the instructions of a device, two at a time, the first one in the
/// lower half of a word. Returns false if it has none, or if a float is no number, whose bits would be lost.
/// `Products`: floats that are no numbers are results of arithmetic, whose bits survive as a bfloat16.
template <class Out, bool Products, class Value, int N>
KOKKOS_FORCEINLINE_FUNCTION bool narrow_pairs([[maybe_unused]] const Value (&value)[N],
                                              [[maybe_unused]] packet<std::uint32_t, N / 2>& words) {
  if constexpr (std::is_same_v<Value, float> && N % 2 == 0 &&
                (std::is_same_v<Out, half_t> || std::is_same_v<Out, bhalf_t>)) {
    KOKKOS_IF_ON_DEVICE(({
      bool all_numbers = true;
      if constexpr (!(Products && std::is_same_v<Out, bhalf_t>))
        for (int e = 0; e < N; ++e) all_numbers = all_numbers && value[e] == value[e];
      if (!all_numbers) return false;
      for (int w = 0; w < N / 2; ++w)
        if (!device_backend<Out>::template narrow_two<std::is_same_v<Out, bhalf_t>>(
                value[2 * w], value[2 * w + 1], words.value[w]))
          return false;
      return true;
    }))
  }
  return false;
}

/// Rows that only move are moved as opaque units of 16 bytes, or of one element if alignment forbids it.
/// So float and int32 rows share their kernels.
template <std::size_t Bytes>
struct opaque {
  packet_integer<Bytes> bits;
};
struct alignas(16) opaque16 {
  std::uint32_t bits[4];
};

/// How far ahead a host's thread prefetches rows: random rows would otherwise be one cache miss after the
/// other. Only the first lines of a row are prefetched; the hardware prefetcher fetches the rest.
struct look_ahead {
  static constexpr std::int64_t line = 64;  // bytes
  static constexpr std::int64_t most_lines = 4;
  static constexpr std::int64_t lines_ahead = 16;

  /// Lines that are prefetched of a row of `row_bytes` bytes.
  KOKKOS_FUNCTION static std::int64_t lines(std::int64_t row_bytes) {
    const std::int64_t total = (row_bytes + line - 1) / line;
    return total < 1 ? 1 : total < most_lines ? total : most_lines;
  }
  /// The number of rows to prefetch ahead.
  KOKKOS_FUNCTION static std::int64_t rows(std::int64_t row_bytes) { return lines_ahead / lines(row_bytes); }

  /// Always inlined: GCC takes a function of nothing but prefetches for one without effects and removes calls
  /// of it.
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch([[maybe_unused]] const void* row,
                                                   [[maybe_unused]] std::int64_t row_bytes) {
    KOKKOS_IF_ON_HOST((const auto* line_begin = static_cast<const char*>(row); __builtin_prefetch(line_begin);
                       if (row_bytes > line) {
                         __builtin_prefetch(line_begin + line);
                         if (row_bytes > 2 * line) __builtin_prefetch(line_begin + 2 * line);
                         if (row_bytes > 3 * line) __builtin_prefetch(line_begin + 3 * line);
                       }))
  }
};

}  // namespace ferry::kernels
