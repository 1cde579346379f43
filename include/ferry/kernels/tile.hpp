#pragma once

#include <ferry/kernels/packet.hpp>
#include <ferry/tensor/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// How the elements of a row are dealt out. A tile is what one work item holds in registers:
///   device, packed   4 elements, one wide load for each array; every address is a multiple of the packet
///   device, single   1 element, for rows that alignment keeps from being packed
///   host             64 elements, a loop that the compiler vectorises; the last tile of a row is shorter
template <int Elements, bool Packed, bool Partial>
struct tile_shape {
  static constexpr int elements = Elements;
  static constexpr bool packed = Packed;
  static constexpr bool partial = Partial;
};
using packed_tile = tile_shape<4, true, false>;
using single_tile = tile_shape<1, false, false>;
using host_tile = tile_shape<64, false, true>;

/// tile[0, count) = from[0, count), converted.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void load_tile(Compute (&tile)[Tile::elements], const T* from, int count) {
  if constexpr (Tile::packed) {
    const auto whole = *reinterpret_cast<const packet<T, Tile::elements>*>(from);
    for (int e = 0; e < Tile::elements; ++e) tile[e] = convert<Compute>(whole.value[e]);
  } else if constexpr (Tile::partial) {
    for (int e = 0; e < count; ++e) tile[e] = convert<Compute>(from[e]);
  } else {
    tile[0] = convert<Compute>(from[0]);
  }
}

/// to[0, count) = tile[0, count), converted.
template <class Tile, class Compute, class T>
KOKKOS_FORCEINLINE_FUNCTION void store_tile(const Compute (&tile)[Tile::elements], T* to, int count) {
  if constexpr (Tile::packed) {
    packet<T, Tile::elements> whole;
    for (int e = 0; e < Tile::elements; ++e) whole.value[e] = convert<T>(tile[e]);
    store_packet(to, whole);
  } else if constexpr (Tile::partial) {
    for (int e = 0; e < count; ++e) to[e] = convert<T>(tile[e]);
  } else {
    to[0] = convert<T>(tile[0]);
  }
}

/// The number of live elements, a constant where tiles are never partial.
template <class Tile>
KOKKOS_FORCEINLINE_FUNCTION constexpr int live(int count) {
  return Tile::partial ? count : Tile::elements;
}

}  // namespace ferry::kernels
