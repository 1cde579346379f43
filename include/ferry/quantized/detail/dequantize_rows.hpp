// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::kernels {

/// out[p] = the values of record source.row(p). Rows that the source does not resolve keep their contents.
/// Each element is computed in double and rounded once, to Out.
///
/// Device mapping: a thread has up to `parts` packets of 4 codes of a row, row-major, and loads all of them
/// before the first store. Neighbouring threads have neighbouring packets, so that each load and store fills
/// whole sectors; those of `out` are stored as packets if `packed` says that they are aligned. All threads of
/// a row load scale and offset from one address. Host mapping: one iteration per block of a row.
template <class Out, class Source, bool Host>
struct dequantize_rows {
  static constexpr std::int64_t tile = Host ? 16384 : 4;  // elements
  static constexpr int parts = Host ? 1 : 4;
  static constexpr unsigned int most_threads = 256;  ///< of a block
  static constexpr unsigned int blocks_at_once = 6;  ///< whose registers fit: more loads are under way
  static constexpr std::int64_t neighbours = 8;      ///< threads whose packets of floats fill a line

  const std::byte* records;
  std::int64_t record_bytes;
  std::int64_t width;
  Out* out;
  std::int64_t out_stride;
  detail::fast_divisor units;  ///< of a row
  bool packed;
  Source source;

  /// Threads of a device for each row, or iterations of a host.
  static std::int64_t units_of(std::int64_t width) {
    const std::int64_t packets = (width + tile - 1) / tile, least = (packets + parts - 1) / parts;
    if (Host || least >= neighbours) return least;
    return packets < neighbours ? packets : neighbours;
  }
  [[nodiscard]] std::int64_t bytes_each() const {
    return (width < tile ? width : tile) * static_cast<std::int64_t>(1 + sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t position = units.quotient(i);
    const std::int64_t row = source.row(position, false);
    if (row < 0) return;
    const std::int64_t unit = i - position * units.divisor();
    const std::byte* record = records + row * record_bytes;
    const auto code = rowwise_int8_code::load(record, width);
    Out* const target = out + source.position(position) * out_stride;
    if constexpr (Host) {
      decode_block(reinterpret_cast<const std::uint8_t*>(record), code, target, unit * tile);
    } else if (packed && width <= most_columns) {
      decode_packets(record, code, target, static_cast<std::uint32_t>(unit));
    } else {
      for (std::int64_t first = unit * tile; first < width; first += units.divisor() * tile)
        decode_elements(record, code, target, first);
    }
  }

 private:
  static constexpr std::int64_t most_columns = std::int64_t{1} << 30;  ///< whose parts fit into 32 bits

  KOKKOS_FORCEINLINE_FUNCTION void decode_packets(const std::byte* record, const rowwise_int8_code& code,
                                                  Out* target, std::uint32_t unit) const {
    const auto columns = static_cast<std::uint32_t>(width),
               distance = static_cast<std::uint32_t>(units.divisor());
    // Whole packets even at the end of a row: 8 more bytes follow the codes. Beyond it the first packet is
    // loaded again: loads without a condition stay ahead of the arithmetic.
    std::uint32_t codes[parts];
    for (std::uint32_t p = 0; p < parts; ++p) {
      const std::uint32_t column = (unit + p * distance) * tile;
      codes[p] = *reinterpret_cast<const std::uint32_t*>(record + (column < columns ? column : unit * tile));
    }
    for (std::uint32_t p = 0; p < parts; ++p)
      if (const std::uint32_t column = (unit + p * distance) * tile; column < columns) {
        packet<Out, tile> whole;
        for (int e = 0; e < tile; ++e)
          whole.value[e] = convert<Out>(code.decode(static_cast<std::uint8_t>(codes[p] >> (8 * e) & 0xffu)));
        store_packet(target + column, whole);
      }
  }
  KOKKOS_FORCEINLINE_FUNCTION void decode_elements(const std::byte* record, const rowwise_int8_code& code,
                                                   Out* target, std::int64_t first) const {
    const auto codes = *reinterpret_cast<const packet<std::uint8_t, tile>*>(record + first);
    for (int e = 0; e < tile; ++e)
      if (first + e < width) target[first + e] = convert<Out>(code.decode(codes.value[e]));
  }

  /// Part after part between arrays of constant length that nothing else aliases, which a compiler vectorises
  /// at -O2.
  void decode_block(const std::uint8_t* codes, const rowwise_int8_code& code, Out* target,
                    std::int64_t begin) const {
    constexpr int block = 16;
    const std::int64_t end = begin + tile < width ? begin + tile : width;
    std::int64_t c = begin;
    for (; c + block <= end; c += block) {
      std::uint8_t part[block];
      Out value[block];
      std::memcpy(part, codes + c, sizeof part);
      for (int e = 0; e < block; ++e) value[e] = convert<Out>(code.decode(part[e]));
      std::memcpy(static_cast<void*>(target + c), value, sizeof value);
    }
    for (; c < end; ++c) target[c] = convert<Out>(code.decode(codes[c]));
  }
};

}  // namespace ferry::kernels
