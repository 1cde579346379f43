// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// Before a loop of a few iterations: at -O3 GCC would copy the body once for each. A device's kernels need
/// the registers of a second copy.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define FERRY_NOT_UNROLLED _Pragma("GCC unroll 1")
#elif defined(__CUDA_ARCH__)
#define FERRY_NOT_UNROLLED _Pragma("unroll 1")
#else
#define FERRY_NOT_UNROLLED
#endif

namespace ferry::kernels {

/// Tile shapes. A tile is the part of a row that one work item holds in registers:
///
///   device, packed   4 elements, one wide load per array; every address is a multiple of the packet. 8 for
///                    rows of 16-bit numbers in kernels with registers for them, see packed_tile_of
///   device, masked   4 elements, for rows whose alignment forbids packets: tiles begin at packets of the
///                    array that is written, so the first and the last one have elements beside the row
///   device, single   1 element, for such rows in kernels without masks
///   host             16 elements, few enough for vector registers; a row's last tile is shorter
///   host, whole      N elements, all of them live: loops of constant length
///
/// A host's tile has the size of the registers that it is compiled for, see detail::registers.
template <int Elements, bool Packed, bool Host, bool Partial, int Registers = 0, bool Masked = false>
struct tile_shape {
  static constexpr int elements = Elements;
  static constexpr int registers = Registers;
  static constexpr bool packed = Packed;
  static constexpr bool host = Host;
  static constexpr bool partial = Partial;
  static constexpr bool masked = Masked;
};
using packed_tile = tile_shape<4, true, false, false>;
using wide_packed_tile = tile_shape<8, true, false, false>;
using single_tile = tile_shape<1, false, false, false>;
using masked_tile = tile_shape<4, false, false, false, 0, true>;
using host_tile = tile_shape<16, false, true, true>;
template <int Elements, int Registers = 0>
using whole_host_tile = tile_shape<Elements, false, true, false, Registers>;

/// The packed tile of kernels that read and write arrays of these elements.
template <class... T>
using packed_tile_of =
    std::conditional_t<((sizeof(T) == 2) || ...) && ((sizeof(T) <= 4) && ...), wide_packed_tile, packed_tile>;

/// The most tiles of a row of `width` elements, on a device.
template <class Tile>
constexpr std::int64_t tiles_of(std::int64_t width) {
  return Tile::masked ? (width + 2 * (Tile::elements - 1)) / Tile::elements : width / Tile::elements;
}

/// The first column of tile `number` of the row at an address. Masked tiles begin at packets of its array, so
/// the first one may begin before the row.
template <class Tile, class T>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t masked_column(std::int64_t number, const T* row) {
  const auto element = reinterpret_cast<std::uintptr_t>(row) / sizeof(T);
  return number * Tile::elements - static_cast<std::int64_t>(element % Tile::elements);
}

/// row * stride. The strides of arrays in packets have 32 bits, see in_units_of: one multiplication less.
template <class Tile>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_offset(std::int64_t row, std::int64_t stride) {
  if constexpr (Tile::packed)
    return row * static_cast<std::int64_t>(static_cast<std::uint32_t>(stride));
  else
    return row * stride;
}

/// The `count` of a device's tile: Tile::elements; of a masked tile its elements [begin, end) in the row, or
/// 0.
template <class Tile>
KOKKOS_FORCEINLINE_FUNCTION constexpr int count_of([[maybe_unused]] std::int64_t column,
                                                   [[maybe_unused]] std::int64_t width) {
  if constexpr (Tile::masked) {
    const int begin = column < 0 ? static_cast<int>(-column) : 0;
    const int end = width - column < Tile::elements ? static_cast<int>(width - column) : Tile::elements;
    return begin < end ? end << 3 | begin : 0;
  } else {
    return Tile::elements;
  }
}
/// The mask of such a count.
struct tile_mask {
  int begin, end;

  KOKKOS_FORCEINLINE_FUNCTION explicit constexpr tile_mask(int count) : begin(count & 7), end(count >> 3) {}
  KOKKOS_FORCEINLINE_FUNCTION constexpr bool has(int e) const { return begin <= e && e < end; }
  /// True if one access moves the whole tile.
  template <int N, class T>
  KOKKOS_FORCEINLINE_FUNCTION bool is_packet(const T* address) const {
    if constexpr ((sizeof(T) & (sizeof(T) - 1)) == 0)
      return begin == 0 && end == N && reinterpret_cast<std::uintptr_t>(address) % (N * sizeof(T)) == 0;
    else
      return false;
  }
};

/// The numbers of type T that a host's kernel copies at once, of N: none if a loop copies them.
template <class To, class From, int N, int Registers>
consteval int lanes_of_copy() {
  if constexpr (std::is_same_v<To, From>) {
    int lanes = ferry::detail::most_lanes<To, Registers>;
    while (lanes > N) lanes /= 2;
    return lanes > 1 && N % lanes == 0 ? lanes : 0;
  } else {
    return 0;
  }
}
template <int Lanes, class T, int... Part>
KOKKOS_FORCEINLINE_FUNCTION void copy_lanes(T* target, const T* source, std::integer_sequence<int, Part...>) {
  using number = typename ferry::detail::lanes_of<T>::template type<Lanes>;
  (number::load(source + Part * Lanes).store(target + Part * Lanes), ...);
}

/// target[0, N) = source[0, N), converted. A host copies whole registers if it can: at -O2 GCC leaves a
/// loop. Elements of one byte it copies at once: in a loop each store of a byte may change what later loads
/// read.
template <int N, int Registers = 0, class To, class From>
KOKKOS_FORCEINLINE_FUNCTION void copy_all(To* target, const From* source) {
  constexpr int lanes = lanes_of_copy<To, From, N, Registers>();
  if constexpr (lanes > 0) {
    copy_lanes<lanes>(target, source, std::make_integer_sequence<int, N / lanes>());
  } else if constexpr (std::is_same_v<To, From> && sizeof(To) == 1 && N > 1) {
    KOKKOS_IF_ON_HOST((std::memcpy(static_cast<void*>(target), source, N);))
    KOKKOS_IF_ON_DEVICE((for (int e = 0; e < N; ++e) target[e] = source[e];))
  } else {
    for (int e = 0; e < N; ++e) target[e] = convert<To>(source[e]);
  }
}

/// target[0, count) = source[0, count), converted; count is at most host_tile::elements. Consists of copies
/// of constant length: GCC turns a loop of `count` iterations into `rep movsq`, which is slower on a tile
/// than the rest of a kernel.
template <int Registers = 0, class To, class From>
KOKKOS_FORCEINLINE_FUNCTION void copy_some(To* target, const From* source, int count) {
  static_assert(host_tile::elements == 16, "ferry: copy_some is written for tiles of 16 elements.");
  if (count == 16) return copy_all<16, Registers>(target, source);
  if (count >= 4) copy_all<4>(target, source);
  if (count >= 8) copy_all<4>(target + 4, source + 4);
  if (count >= 12) copy_all<4>(target + 8, source + 8);
  const int fours = count & ~3;
  const int left = count & 3;
  if (left > 0) target[fours] = convert<To>(source[fours]);
  if (left > 1) target[fours + 1] = convert<To>(source[fours + 1]);
  if (left > 2) target[fours + 2] = convert<To>(source[fours + 2]);
}

/// tile[0, count) = source[0, count), converted.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void load_tile(Compute (&tile)[Tile::elements], const T* source, int count) {
  if constexpr (Tile::packed) {
    const auto whole = load_packet<T, Tile::elements>(source);
    for (int e = 0; e < Tile::elements; ++e) tile[e] = convert<Compute>(whole.value[e]);
  } else if constexpr (Tile::masked) {
    const tile_mask mask(count);
    if (mask.is_packet<Tile::elements>(source)) return load_tile<packed_tile>(tile, source, count);
    for (int e = 0; e < Tile::elements; ++e) tile[e] = mask.has(e) ? convert<Compute>(source[e]) : Compute{};
  } else if constexpr (Tile::partial) {
    copy_some<Tile::registers>(tile, source, count);
  } else {
    copy_all<Tile::elements, Tile::registers>(tile, source);
  }
}

/// target[0, count) = tile[0, count), converted.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void store_tile(const Compute (&tile)[Tile::elements], T* target, int count) {
  if constexpr (Tile::packed) {
    packet<T, Tile::elements> whole;
    for (int e = 0; e < Tile::elements; ++e) whole.value[e] = convert<T>(tile[e]);
    store_packet(target, whole);
  } else if constexpr (Tile::masked) {
    const tile_mask mask(count);
    if (mask.is_packet<Tile::elements>(target)) return store_tile<packed_tile>(tile, target, count);
    for (int e = 0; e < Tile::elements; ++e)
      if (mask.has(e)) target[e] = convert<T>(tile[e]);
  } else if constexpr (Tile::partial) {
    copy_some<Tile::registers>(target, tile, count);
  } else {
    copy_all<Tile::elements, Tile::registers>(target, tile);
  }
}

/// True if instructions of a device convert packets of T from and to floats, two numbers at a time.
template <class Tile, class Compute, class T>
inline constexpr bool converts_pairs = Tile::packed&& Tile::elements % 2 == 0 &&
                                       ferry::detail::is_float_number<Compute> &&
                                       sizeof(T) == 2 && is_extended_number<T>;

/// load_tile of numbers that are added next: the bits of one that is no number are lost anyway.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void load_addends(Compute (&tile)[Tile::elements], const T* source, int count) {
  if constexpr (converts_pairs<Tile, Compute, T> && std::is_same_v<T, half_t>) {
    KOKKOS_IF_ON_DEVICE(({
      const auto words =
          load_packet<std::uint32_t, Tile::elements / 2>(reinterpret_cast<const std::uint32_t*>(source));
      bool converts = true;
      for (int w = 0; w < Tile::elements / 2; ++w) {
        float first = 0, second = 0;
        converts = converts && device_backend<T>::widen_two(words.value[w], first, second);
        tile[2 * w] = Compute(first);
        tile[2 * w + 1] = Compute(second);
      }
      if (converts) return;
    }))
  }
  load_tile<Tile>(tile, source, count);
}

/// store_tile of results of arithmetic. Those of a device that are no numbers all have one pattern of bits,
/// which its conversions keep.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void store_results(const Compute (&tile)[Tile::elements], T* target, int count) {
  if constexpr (converts_pairs<Tile, Compute, T>) {
    KOKKOS_IF_ON_DEVICE(({
      packet<std::uint32_t, Tile::elements / 2> words;
      bool converts = true;
      for (int w = 0; w < Tile::elements / 2; ++w)
        converts = converts &&
                   device_backend<T>::template narrow_two<std::is_same_v<T, bhalf_t>>(
                       static_cast<float>(tile[2 * w]), static_cast<float>(tile[2 * w + 1]), words.value[w]);
      if (converts) return store_packet(reinterpret_cast<std::uint32_t*>(target), words);
    }))
  }
  store_tile<Tile>(tile, target, count);
}

/// Host: visit(tile, column) for whole tiles of Most, 4 and 1 elements, which cover `width` columns. Evenly
/// is 0, or a divisor of the width: the columns of one iteration.
template <int Most, int Evenly, int Registers, class Visit>
[[gnu::always_inline]] inline void each_tile(std::int64_t width, const Visit& visit) {
  std::int64_t column = 0;
  if constexpr (Evenly != 0) {
    do {
      for (int first = 0; first < Evenly; first += Most)
        visit(whole_host_tile<Most, Registers>{}, column + first);
      column += Evenly;
    } while (column < width);
  } else {
    for (; column + Most <= width; column += Most) visit(whole_host_tile<Most, Registers>{}, column);
    if constexpr (Most > 4) {
      FERRY_NOT_UNROLLED
      for (; column + 4 <= width; column += 4) visit(whole_host_tile<4, Registers>{}, column);
    }
    if constexpr (Most > 1) {
      FERRY_NOT_UNROLLED
      for (; column < width; ++column) visit(whole_host_tile<1, Registers>{}, column);
    }
  }
}

/// The number of live elements, a constant if tiles are never partial.
template <class Tile>
KOKKOS_FORCEINLINE_FUNCTION constexpr int live(int count) {
  return Tile::partial ? count : Tile::elements;
}

}  // namespace ferry::kernels
