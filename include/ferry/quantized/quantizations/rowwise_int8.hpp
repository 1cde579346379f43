// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::quantization {

/// Rows of FBGEMM's fused 8-bit rowwise format (PyTorch's embedding_bag_byte), whose table is
/// rowwise_int8_tensor:
///
///   scale = (most - least) / 255, offset = least
///   code  = (value - offset) / scale, to nearest even
///   value = offset + scale * code, in double
///
/// A row is stored as one record: `width` codes, the scale (float), the offset (float), zeros up to a
/// multiple of 16 bytes, so that records move in 16-byte units.
///
/// A constant row has the scale 0 and is restored exactly. A row with infinity or NaN has NaN as scale and
/// offset, and is restored as NaN.
struct rowwise_int8 {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "rowwise_int8";
  using code_type = std::byte;
  using scale_type = kernels::rowwise_int8_code;
  using step_type = kernels::rowwise_int8_code;
  static constexpr int code_bits = 8;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = true;

  /// Bytes of the record of a row of `width` numbers.
  [[nodiscard]] static constexpr std::size_t record_bytes(std::size_t width) {
    return (width + 2 * sizeof(float) + 15) / 16 * 16;
  }

  KOKKOS_FUNCTION static scale_type scale_of(const block_range& range, float) {
    return scale_type::of(range.least, range.most);
  }
  KOKKOS_FUNCTION static step_type step_of(const scale_type& scale, float) { return scale; }
  KOKKOS_FUNCTION static double decode(std::uint32_t code, const step_type& step) {
    return step.decode(static_cast<std::uint8_t>(code));
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, const step_type& step) {
    return step.by_steps().nearest(value) & (step.has_steps() ? 0xffu : 0u);  // a branch becomes memset
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, const step_type& step,
                                                        std::uint32_t random) {
    return step.has_steps() ? step.by_steps().at_random(value, random) : 0u;
  }

  /// Encodes four numbers of a row at once.
  struct encoder {
    /// The steps of the row, if it has any, and the codes of four numbers in the bytes of a word.
    /// @{
    scale_type::encoder steps;
    bool has_steps;

    KOKKOS_FORCEINLINE_FUNCTION explicit encoder(const step_type& step)
        : steps(step.by_steps()), has_steps(step.has_steps()) {}
    KOKKOS_FORCEINLINE_FUNCTION bool encode_four(const float (&value)[4], std::uint32_t& codes) const {
      codes = 0;
      if (has_steps)
        for (int e = 0; e < 4; ++e) codes |= static_cast<std::uint32_t>(steps.nearest(value[e])) << (8 * e);
      return true;
    }
    /// @}
  };
  /// @}
};
static_assert(Quantization<rowwise_int8>);

}  // namespace ferry::quantization

namespace ferry {

/// A table of 8-bit rows, rowwise_int8_tensor<Space>: element (r, c) has the value
/// offset[r] + scale[r] * code(r, c), with codes of 0 to 255 and two floats per row. It needs about a quarter
/// of a float table's bytes, and so does a batch that travels. See quantization::rowwise_int8.
template <MemorySpace Space>
using rowwise_int8_tensor = quantized_tensor<quantization::rowwise_int8, Space, Space>;

}  // namespace ferry
