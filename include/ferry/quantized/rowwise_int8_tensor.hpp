// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <string>

namespace ferry {

/// A table of 8-bit rows, rowwise_int8_tensor<Space>: element (r, c) has the value
/// offset[r] + scale[r] * code(r, c), with codes of 0 to 255 and two floats per row. It needs about a quarter
/// of a float table's bytes, and so does a batch that travels.
///
/// A row is stored as one record: `width` codes, the scale (float), the offset (float), zeros up to a
/// multiple of 16 bytes, so that records move in 16-byte units. The first width + 8 bytes are a row of
/// FBGEMM's fused 8-bit rowwise format (PyTorch's embedding_bag_byte).
///
/// ferry::gather, ferry::scatter and ferry::step accept it as a table. ferry::quantize and ferry::dequantize
/// convert whole tables. Its memory is not initialised. It is owning and move-only, like ferry::tensor.
template <MemorySpace Space>
class quantized_tensor<quantization::rowwise_int8, Space, Space> {
 public:
  using quantization = ferry::quantization::rowwise_int8;  ///< how numbers are encoded
  /// The memory space of the records.
  using memory_space = Space;

  quantized_tensor() = default;
  /// Throws like the constructor of ferry::tensor.
  template <std::integral Rows, std::integral Width>
  quantized_tensor(const std::string& label, Rows rows, Width width)
      : width_(checked_width(label, rows, width)), records_(label, rows, record_bytes(width_)) {}
  /// Refuses other arguments. Does not compile.
  template <class First, class... Rest>
    requires(detail::is_refused_quantized<First, Rest...>())
  explicit quantized_tensor(const First&, const Rest&...) { detail::refuse_quantized<First>(); }

  /// Rows of the table.
  [[nodiscard]] std::size_t rows() const noexcept { return records_.rows(); }
  /// Elements of a row.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  /// Extent i of the elements, 1 for i >= 2.
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i == 0 ? rows() : i == 1 ? width() : 1;
  }
  /// Number of extents.
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 2; }
  /// Number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return rows() * width(); }
  /// The first record, of rows() * row_bytes() bytes.
  /// @{
  [[nodiscard]] std::byte* data() noexcept { return records_.data(); }
  [[nodiscard]] const std::byte* data() const noexcept { return records_.data(); }
  /// @}
  /// Bytes of a row's record.
  [[nodiscard]] std::size_t row_bytes() const noexcept { return records_.width(); }
  /// The label that messages and tools name.
  [[nodiscard]] const std::string& label() const noexcept { return records_.label(); }
  /// Label, extents, and how the memory was obtained. The extents are those of records().
  [[nodiscard]] std::string describe() const { return records_.describe(); }

  /// The storage, rows() x row_bytes() bytes: copy it between spaces or write it to a file.
  [[nodiscard]] tensor<std::byte, Space>& records() noexcept { return records_; }
  /// Read-only access to the storage.
  [[nodiscard]] const tensor<std::byte, Space>& records() const noexcept { return records_; }

  /// Bytes of the record of a row of `width` elements.
  [[nodiscard]] static constexpr std::size_t record_bytes(std::size_t width) {
    return (width + 2 * sizeof(float) + 15) / 16 * 16;
  }

 private:
  static std::size_t checked_width(const std::string& label, std::integral auto rows,
                                   std::integral auto width) {
    const auto sizes = detail::checked_extents(label, rows, width);
    return shape<dynamic_rank>::make(sizes, label, sizeof(float)).width();
  }

  std::size_t width_ = 0;
  tensor<std::byte, Space> records_;
};

/// The table of quantization::rowwise_int8.
template <MemorySpace Space>
using rowwise_int8_tensor = quantized_tensor<quantization::rowwise_int8, Space, Space>;

namespace detail {
template <class Space>
inline constexpr bool is_codes<quantized_tensor<quantization::rowwise_int8, Space, Space>> = true;
template <class Space>
inline constexpr bool is_quantized<quantized_tensor<quantization::rowwise_int8, Space, Space>> = true;
}  // namespace detail

}  // namespace ferry
