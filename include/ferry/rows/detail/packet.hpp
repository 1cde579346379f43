// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::kernels {

/// N elements moved by one load or store, where the addresses allow it.
template <class T, int N>
struct alignas(sizeof(T) * N) packet {
  T value[N];
};

/// The integer type that stores a packet of `Bytes` bytes.
template <std::size_t Bytes>
struct packet_integer;
template <>
struct packet_integer<2> {
  using type = std::uint16_t;
};
template <>
struct packet_integer<4> {
  using type = std::uint32_t;
};
template <>
struct packet_integer<8> {
  using type = std::uint64_t;
};
#if defined(__SIZEOF_INT128__)
template <>
struct packet_integer<16> {
  __extension__ using type = unsigned __int128;
};
inline constexpr std::size_t widest_store = 16;
#else
inline constexpr std::size_t widest_store = 8;
#endif

/// to[0, N) = from, by as few stores as the packet's size allows.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void store_as_integers(T* to, const packet<T, N>& from) {
  constexpr std::size_t unit = sizeof(from) < widest_store ? sizeof(from) : widest_store;
  constexpr std::size_t units = sizeof(from) / unit;
  using integer = typename packet_integer<unit>::type;
  integer bits[units];
  std::memcpy(bits, &from, sizeof(from));
  for (std::size_t u = 0; u < units; ++u) reinterpret_cast<integer*>(to)[u] = bits[u];
}

/// to[0, N) = from. nvcc splits aggregate stores of packets assembled in registers, and the assembler does
/// not always join them again; integer stores stay wide. Over a link, split stores took 27 ms for a step that
/// takes 5 ms (H200).
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void store_packet(T* to, const packet<T, N>& from) {
  KOKKOS_IF_ON_DEVICE((store_as_integers(to, from);))
  KOKKOS_IF_ON_HOST((std::memcpy(static_cast<void*>(to), &from, sizeof(from));))
}

/// Rows that only move are moved as opaque units of 16 bytes, or of one element where alignment forbids it.
/// So float and int32 rows share their kernels.
template <std::size_t Bytes>
struct opaque {
  unsigned char byte[Bytes];
};
template <>
struct opaque<2> {
  std::uint16_t bits;
};
template <>
struct opaque<4> {
  std::uint32_t bits;
};
template <>
struct opaque<8> {
  std::uint64_t bits;
};
/// One element that moves bit by bit, whatever its type supports.
template <class T>
struct alignas(T) whole_element {
  unsigned char byte[sizeof(T)];
};
struct alignas(16) opaque16 {
  std::uint32_t bits[4];
};

}  // namespace ferry::kernels
