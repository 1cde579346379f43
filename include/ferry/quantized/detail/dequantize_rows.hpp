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
/// Device mapping: one thread per 4 codes of a row, row-major. A warp loads 128 neighbouring codes, and
/// stores neighbouring packets where `packed` says that those of `out` are aligned. All threads of a row load
/// scale and offset from one address. Host mapping: one iteration per block of a row.
template <class Out, class Source, bool Host>
struct dequantize_rows {
  static constexpr std::int64_t tile = Host ? 16384 : 4;  // elements

  const std::byte* records;
  std::int64_t record_bytes;
  std::int64_t width;
  Out* out;
  std::int64_t out_stride;
  detail::fast_divisor tiles;
  bool packed;
  Source source;

  [[nodiscard]] std::int64_t bytes_each() const {
    return (width < tile ? width : tile) * static_cast<std::int64_t>(1 + sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t position = tiles.quotient(i);
    const std::int64_t row = source.row(position, false);
    if (row < 0) return;
    const std::int64_t column = (i - position * tiles.divisor()) * tile;
    const std::int64_t count = width - column < tile ? width - column : tile;
    const std::byte* record = records + row * record_bytes;
    const auto code = rowwise_int8_code::load(record, width);
    Out* target = out + source.position(position) * out_stride + column;
    if constexpr (Host) {
      const auto* codes = reinterpret_cast<const std::uint8_t*>(record) + column;
      // From and to arrays of constant length that nothing else aliases, which a compiler vectorises at -O2.
      constexpr int block = 16;
      std::int64_t c = 0;
      for (; c + block <= count; c += block) {
        std::uint8_t part[block];
        Out value[block];
        std::memcpy(part, codes + c, sizeof part);
        for (int e = 0; e < block; ++e) value[e] = convert<Out>(code.decode(part[e]));
        std::memcpy(static_cast<void*>(target + c), value, sizeof value);
      }
      for (; c < count; ++c) target[c] = convert<Out>(code.decode(codes[c]));
    } else {
      // A whole packet even at the end of a row: 8 more bytes follow the codes.
      const auto codes = *reinterpret_cast<const packet<std::uint8_t, tile>*>(record + column);
      if (packed) {
        packet<Out, tile> whole;
        for (int e = 0; e < tile; ++e) whole.value[e] = convert<Out>(code.decode(codes.value[e]));
        store_packet(target, whole);
      } else {
        for (int e = 0; e < tile; ++e)
          if (e < count) target[e] = convert<Out>(code.decode(codes.value[e]));
      }
    }
  }
};

}  // namespace ferry::kernels
