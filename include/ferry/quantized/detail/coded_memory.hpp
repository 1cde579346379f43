// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/chunks.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// The scales of a row: an array, or the record behind the codes.
template <class Q>
using scale_pointer = std::conditional_t<Q::in_records, const std::byte*, const typename Q::scale_type*>;

/// The scale of a block. Columns: a divisor of the width.
template <class Q, int Columns = 1, class Block>
KOKKOS_FORCEINLINE_FUNCTION auto scale_at([[maybe_unused]] scale_pointer<Q> scales,
                                          [[maybe_unused]] Block block) {
  if constexpr (!has_scales<Q>)
    return no_scale{};
  else if constexpr (Q::in_records)
    return Q::scale_type::template load<Columns>(scales);
  else
    return scales[block];
}

/// Facts of codes and scales that do not depend on where a table has them. A kind of memory adds:
///
///   codes_of(row), scales_of(row)   where those of a row begin
///   memory_of(row)                  the memory of the codes in which a row lies
///   is_aligned(bytes)               true if the codes of all rows begin at multiples of this many bytes
///   units_of_row()                  the most units of 16 bytes that the codes of a row touch
template <class Q>
struct coded_blocks {
  using quantization = Q;

  std::int64_t row_bytes = 0;  ///< of codes
  std::int64_t blocks = 0;     ///< scales of a row
  float tensor_scale = 1.0f;

  /// By which the codes of a block are decoded.
  template <class Block>
  KOKKOS_FORCEINLINE_FUNCTION typename Q::step_type step_of(scale_pointer<Q> scales, Block block) const {
    return Q::step_of(scale_at<Q>(scales, block), tensor_scale);
  }
  /// The block of a column.
  template <class Column>
  KOKKOS_FORCEINLINE_FUNCTION static Column block_of([[maybe_unused]] Column column) {
    if constexpr (Q::block == 0)
      return 0;
    else
      return column / static_cast<Column>(Q::block);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool begins_block(std::int64_t column) {
    if constexpr (Q::block == 0)
      return column == 0;
    else
      return column % Q::block == 0;
  }
  /// True if rows of codes from an address on begin at multiples of this many bytes.
  [[nodiscard]] bool is_aligned_from(const std::byte* codes, int bytes) const {
    return reinterpret_cast<std::uintptr_t>(codes) % static_cast<std::uintptr_t>(bytes) == 0 &&
           (Q::in_records || row_bytes % bytes == 0);
  }
  [[nodiscard]] std::int64_t units_from(const std::byte* codes) const {
    return chunks_of_rows(reinterpret_cast<std::uintptr_t>(codes), Q::in_records ? unit_bytes : row_bytes,
                          row_bytes, 1);
  }
};

/// The codes and scales of a table in arrays, or records, as kernels read them. Records are whole units.
template <class Q>
struct coded_memory : coded_blocks<Q> {
  const std::byte* codes = nullptr;
  const typename Q::scale_type* scales = nullptr;
  readable_memory memory{};       ///< of the codes
  std::int64_t record_bytes = 0;  ///< from one record to the next

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION readable_memory memory_of(std::int64_t) const { return memory; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const std::byte* codes_of(std::int64_t row) const {
    return codes + row * (Q::in_records ? record_bytes : this->row_bytes);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION scale_pointer<Q> scales_of(std::int64_t row) const {
    if constexpr (Q::in_records)
      return codes_of(row) + this->row_bytes;
    else
      return scales + row * this->blocks;
  }
  [[nodiscard]] bool is_aligned(int bytes) const { return this->is_aligned_from(codes, bytes); }
  [[nodiscard]] std::int64_t units_of_row() const { return this->units_from(codes); }
};

}  // namespace ferry::kernels
