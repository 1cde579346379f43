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

/// target[0, N) = value, by as few stores as the packet's size allows.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void store_as_integers(T* target, const packet<T, N>& value) {
  constexpr std::size_t unit = sizeof(value) < widest_store ? sizeof(value) : widest_store;
  constexpr std::size_t units = sizeof(value) / unit;
  using integer = typename packet_integer<unit>::type;
  integer bits[units];
  std::memcpy(bits, &value, sizeof(value));
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
