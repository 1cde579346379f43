// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/block_bounds.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// Codes and scales of row p = those of the values of position p, row source.row(p), for each position that
/// the source names. Numbers are rounded to float first.
///
/// Both mappings read a block twice if it has a scale: for its range, and for its codes. The second read
/// comes from the first level of cache.
///
/// Device mapping, by teams: the vector lanes of one thread share a block, 4 numbers at a time, and reduce
/// its range by shuffles. Neighbouring lanes read neighbouring bytes. Host mapping: one iteration per row.
template <class Q, class Value, class Source>
struct encode_rows {
  static constexpr int tile = packed_tile::elements;
  static constexpr int bits = Q::code_bits;
  static constexpr int tile_bytes = tile * bits / 8;
  static_assert(tile * bits % 8 == 0);

  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::byte* codes;
  std::int64_t row_bytes;
  typename Q::scale_type* scales;
  detail::fast_divisor blocks;  ///< of a row
  float tensor_scale;
  std::int64_t rows;
  bool packed;  ///< every row of values consists of packets
  Source source;

  /// Bytes of a row, which is read twice.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(2 * sizeof(Value) + 1);
  }
  /// Numbers of a block.
  static std::int64_t block_numbers(std::int64_t width) { return Q::block == 0 ? width : Q::block; }

  KOKKOS_FUNCTION void operator()([[maybe_unused]] std::int64_t position) const {
    KOKKOS_IF_ON_HOST(
        (const std::int64_t row = source.row(position, false); if (row >= 0) encode_row(position, row);))
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t threads = team.team_size();
    const std::int64_t every_block = rows * blocks.divisor();
    for (std::int64_t i = team.league_rank() * threads + team.team_rank(); i < every_block;
         i += team.league_size() * threads) {
      const std::int64_t position = blocks.quotient(i);
      const std::int64_t row = source.row(position, false);
      if (row < 0) continue;
      const std::int64_t block = i - position * blocks.divisor();
      const std::int64_t first = Q::block == 0 ? 0 : block * Q::block;
      const std::int64_t count = Q::block == 0 ? width : Q::block;
      const std::int64_t tiles = (count + tile - 1) / tile;
      const Value* const numbers = values + row * values_stride + first;
      std::byte* const target = codes + position * row_bytes + first * bits / 8;
      typename Q::scale_type scale{};
      if constexpr (has_scales<Q>) {
        auto bounds = block_bounds::nothing();
        Kokkos::parallel_reduce(
            Kokkos::ThreadVectorRange(team, tiles),
            [&](const std::int64_t t, block_bounds::values& part) {
              float value[tile];
              const int live_count = load(value, numbers, count, t);
              for (int e = 0; e < tile; ++e)
                if (e < live_count) block_bounds::widen(part, value[e]);
            },
            block_bounds::reducer(bounds));
        scale = Q::scale_of(block_bounds::range_of(bounds), tensor_scale);
        Kokkos::single(Kokkos::PerThread(team), [&] { scales[i] = scale; });
      }
      const auto step = Q::step_of(scale, tensor_scale);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, tiles), [&](const std::int64_t t) {
        float value[tile];
        const int live_count = load(value, numbers, count, t);
        store(value, live_count, step, target + t * tile_bytes);
      });
    }
  }

 private:
  void encode_row(std::int64_t position, std::int64_t row) const {
    const std::int64_t count = Q::block == 0 ? width : Q::block;
    for (std::int64_t block = 0; block < blocks.divisor(); ++block) {
      const Value* const numbers = values + row * values_stride + block * count;
      std::byte* const target = codes + position * row_bytes + block * count * bits / 8;
      typename Q::scale_type scale{};
      if constexpr (has_scales<Q>) {
        auto bounds = block_bounds::nothing();
        for (std::int64_t e = 0; e < count; ++e) block_bounds::widen(bounds, convert<float>(numbers[e]));
        scale = Q::scale_of(block_bounds::range_of(bounds), tensor_scale);
        scales[position * blocks.divisor() + block] = scale;
      }
      const auto step = Q::step_of(scale, tensor_scale);
      for (std::int64_t t = 0; t * tile < count; ++t) {
        float value[tile];
        const int live_count = load(value, numbers, count, t);
        store(value, live_count, step, target + t * tile_bytes);
      }
    }
  }

  /// value[0, n) = numbers of tile t; returns n.
  KOKKOS_FORCEINLINE_FUNCTION int load(float (&value)[tile], const Value* numbers, std::int64_t count,
                                       std::int64_t t) const {
    const std::int64_t left = count - t * tile;
    const int live_count = static_cast<int>(left < tile ? left : tile);
    if (packed && live_count == tile)
      load_tile<packed_tile>(value, numbers + t * tile, tile);
    else
      for (int e = 0; e < tile; ++e) value[e] = e < live_count ? convert<float>(numbers[t * tile + e]) : 0.0f;
    return live_count;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void store(const float (&value)[tile], int count,
                                                const typename Q::step_type& step, std::byte* target) {
    std::uint64_t joined = 0;
    for (int e = 0; e < tile; ++e)
      if (e < count) joined |= static_cast<std::uint64_t>(Q::encode(value[e], step)) << (e * bits);
    const auto place = reinterpret_cast<std::uintptr_t>(target);
    if (bits == 8 && count == tile && place % 4 == 0) {
      *reinterpret_cast<opaque<4>*>(target) = {static_cast<std::uint32_t>(joined)};
    } else if (bits == 4 && count == tile && place % 2 == 0) {
      *reinterpret_cast<opaque<2>*>(target) = {static_cast<std::uint16_t>(joined)};
    } else {
      for (int b = 0; b < tile_bytes; ++b)
        if (b * 8 < count * bits) target[b] = static_cast<std::byte>(joined >> (8 * b) & 0xffu);
    }
  }
};

}  // namespace ferry::kernels
