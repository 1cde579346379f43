#pragma once

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// N elements moved by one load or store, where the addresses allow it.
template <class T, int N>
struct alignas(sizeof(T) * N) packet {
  T value[N];
};

/// Rows that only move are moved as opaque units of 16 bytes, or of one element where alignment forbids it;
/// so float and int32 rows share their kernels.
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
/// One element that moves as it is, whatever its type can do.
template <class T>
struct alignas(T) whole_element {
  unsigned char byte[sizeof(T)];
};
struct alignas(16) opaque16 {
  std::uint32_t bits[4];
};

}  // namespace ferry::kernels
