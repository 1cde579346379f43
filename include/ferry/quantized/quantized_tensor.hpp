// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/detail/tensor_memory.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

/// The extents of codes and scales.
namespace ferry::detail {

[[noreturn]] void refuse_quantized_width(const std::string& label, std::size_t width,
                                         const char* quantization, std::size_t block);
/// Throws invalid_argument unless the factor of a table is positive and finite.
void require_factor(const std::string& label, float factor);

/// Numbers of the shortest row: whole blocks, and whole elements of the array of codes.
template <Quantization Q>
consteval std::size_t least_width() {
  std::size_t width = Q::block == 0 ? 1 : Q::block;
  while (width * Q::code_bits % (8 * sizeof(typename Q::code_type)) != 0)
    width += Q::block == 0 ? 1 : Q::block;
  return width;
}

/// The width of a row, if it is allowed.
template <Quantization Q>
std::size_t quantized_width(const std::string& label, std::span<const std::size_t> extents) {
  const std::size_t width = shape<dynamic_rank>::make(extents, label, sizeof(double)).width();
  if (width % least_width<Q>() != 0) refuse_quantized_width(label, width, Q::name, least_width<Q>());
  return width;
}

/// Elements of a row of codes, or bytes of a record.
template <Quantization Q>
constexpr std::size_t stored_columns(std::size_t width) {
  if constexpr (Q::in_records)
    return Q::record_bytes(width);
  else
    return width * Q::code_bits / (8 * sizeof(typename Q::code_type));
}

/// Scales of a row.
template <Quantization Q>
constexpr std::size_t blocks_of(std::size_t width) {
  if constexpr (Q::block == 0)
    return 1;
  else
    return width / Q::block;
}

template <Quantization Q, class Space>
using scales_of = typename std::conditional_t<
    has_scale_array<Q>,
    std::type_identity<tensor<std::conditional_t<has_scale_array<Q>, typename Q::scale_type, float>, Space>>,
    std::type_identity<no_scale>>::type;

template <Quantization Q, class Space>
scales_of<Q, Space> make_scales([[maybe_unused]] const std::string& label, [[maybe_unused]] auto rows,
                                [[maybe_unused]] std::size_t width) {
  if constexpr (has_scale_array<Q>)
    return scales_of<Q, Space>(joined(label, " (scales)"), rows, blocks_of<Q>(width));
  else
    return {};
}

template <Quantization Q>
consteval void require_scales() {
  static_assert(
      has_scales<Q>,
      "ferry: blocks of this quantization have no scales; its table has one factor, scale() and set_scale(x).");
}

}  // namespace ferry::detail

namespace ferry {

namespace quantization {
struct rowwise_int8;
}

namespace detail {
/// The factor of a table. It keeps its address when the table is moved.
template <class Table>
float* factor_of(Table& table) {
  if (table.factor_ == nullptr) table.factor_ = std::make_unique<float>(1.0f);
  return table.factor_.get();
}
}  // namespace detail

/// A table of quantized rows:
///
///   quantized_tensor<quantization::mxfp8, mapped_space> table("engram", rows, 256);
///   quantized_tensor<quantization::mxfp8, mapped_space, device_space> fast("engram", rows, 256);
///
/// Codes and scales are arrays of their own, with the shapes that checkpoints have. A row of codes lies right
/// behind the one before it: width * code_bits / 8 bytes. Rows that are multiples of 128 bytes begin at
/// lines of the memory. The scales may lie in another memory space than the codes. Rows of
/// quantization::rowwise_int8 are records that hold their scales: records() is their array.
///
/// ferry::gather, scatter, quantize, dequantize and copy take it. Its memory is not initialised. It is owning
/// and move-only, like ferry::tensor.
template <class Q, class Space, class ScaleSpace = Space>
class quantized_tensor {
  static_assert(
      !Q::in_records ||
          (std::is_same_v<Q, ferry::quantization::rowwise_int8> && std::is_same_v<Space, ScaleSpace>),
      "ferry: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space; other quantizations keep scales in an array.");

 public:
  using quantization = Q;                     ///< how numbers are encoded
  using memory_space = Space;                 ///< where the codes lie
  using scale_space = ScaleSpace;             ///< where the scales lie
  using code_type = typename Q::code_type;    ///< elements of codes()
  using scale_type = typename Q::scale_type;  ///< elements of scales()

  quantized_tensor() = default;
  /// Throws like the constructor of ferry::tensor; invalid_argument unless the width consists of whole blocks
  /// and whole elements of codes().
  template <std::integral Rows, std::integral Width>
  quantized_tensor(const std::string& label, Rows rows, Width width)
      : width_(detail::quantized_width<Q>(label, detail::checked_extents(label, rows, width))),
        codes_(label, rows, detail::stored_columns<Q>(width_)),
        scales_(detail::make_scales<Q, ScaleSpace>(label, rows, width_)) {}
  /// Refuses other arguments. Does not compile.
  template <class First, class... Rest>
    requires(detail::is_refused_quantized<First, Rest...>())
  explicit quantized_tensor(const First&, const Rest&...) { detail::refuse_quantized<First>(); }

  /// Rows of the table.
  [[nodiscard]] std::size_t rows() const noexcept { return codes_.rows(); }
  /// Numbers of a row.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  /// Extent i of the numbers, 1 for i >= 2.
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i == 0 ? rows() : i == 1 ? width() : 1;
  }
  /// Number of extents.
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 2; }
  /// Number of numbers.
  [[nodiscard]] std::size_t size() const noexcept { return rows() * width(); }
  /// Scales of a row.
  [[nodiscard]] std::size_t blocks() const noexcept { return detail::blocks_of<Q>(width_); }
  /// Bytes of a row: codes and scales, or its record.
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return codes_.width() * sizeof(code_type) +
           (detail::has_scale_array<Q> ? blocks() * sizeof(scale_type) : 0);
  }
  /// The label that messages and tools name.
  [[nodiscard]] const std::string& label() const noexcept { return codes_.label(); }
  /// Label, extents, and how the memory was obtained. The extents are those of codes(), or of records().
  [[nodiscard]] std::string describe() const { return codes_.describe(); }

  /// The codes, rows() x width() elements of 8 bits, or rows() x width() / 2 pairs.
  /// @{
  [[nodiscard]] tensor<code_type, Space>& codes() noexcept requires(!Q::in_records) { return codes_; }
  [[nodiscard]] const tensor<code_type, Space>& codes() const noexcept requires(!Q::in_records) {
    return codes_;
  }
  /// @}
  /// The scales, rows() x blocks().
  /// @{
  [[nodiscard]] auto& scales() noexcept requires(!Q::in_records) {
    detail::require_scales<Q>();
    return scales_;
  }
  [[nodiscard]] const auto& scales() const noexcept requires(!Q::in_records) {
    detail::require_scales<Q>();
    return scales_;
  }
  /// @}
  /// The records, rows() x row_bytes() bytes: copy them between spaces or write them to a file.
  /// @{
  [[nodiscard]] tensor<code_type, Space>& records() noexcept requires(Q::in_records) { return codes_; }
  [[nodiscard]] const tensor<code_type, Space>& records() const noexcept requires(Q::in_records) {
    return codes_;
  }
  /// @}
  /// The first record.
  /// @{
  [[nodiscard]] std::byte* data() noexcept requires(Q::in_records) { return codes_.data(); }
  [[nodiscard]] const std::byte* data() const noexcept requires(Q::in_records) { return codes_.data(); }
  /// @}
  /// Bytes of the record of a row of `width` numbers.
  [[nodiscard]] static constexpr std::size_t record_bytes(std::size_t width) requires(Q::in_records) {
    return Q::record_bytes(width);
  }
  /// The factor of all numbers; 1 until it is set. Verbs read it when they are called.
  [[nodiscard]] float scale() const noexcept { return factor_ == nullptr ? 1.0f : *factor_; }
  /// Sets the factor of all numbers. Codes and scales stay as they are. Throws invalid_argument unless it is
  /// positive and finite.
  void set_scale(float factor) {
    static_assert(
        Q::has_tensor_scale,
        "ferry: numbers of this quantization have no factor for the table; quantization::e4m3, e5m2 and nvfp4 have one.");
    detail::require_factor(label(), factor);
    *detail::factor_of(*this) = factor;
  }

 private:
  std::size_t width_ = 0;
  tensor<code_type, Space> codes_;
  detail::scales_of<Q, ScaleSpace> scales_;
  std::unique_ptr<float> factor_;  // keeps its address when the table is moved; null: 1

  template <class Table>
  friend float* detail::factor_of(Table& table);
};

/// Refuses template arguments that are no quantization and memory spaces. Does not compile.
template <class Q, class Space, class ScaleSpace>
  requires(!(Quantization<Q> && MemorySpace<Space> && MemorySpace<ScaleSpace>))
class quantized_tensor<Q, Space, ScaleSpace> {
  static_assert(
      sizeof(std::type_identity<Q>) == 0,
      "ferry: the template arguments of a quantized_tensor are a quantization and one or two memory spaces: quantized_tensor<quantization::mxfp8, mapped_space>.");

 public:
  /// Takes what is refused.
  template <class... Arguments>
  explicit quantized_tensor(const Arguments&...) {}
};

namespace detail {
template <class Q, class Space, class ScaleSpace>
inline constexpr bool is_quantized<quantized_tensor<Q, Space, ScaleSpace>> = true;
template <class Q, class Space, class ScaleSpace>
inline constexpr bool is_codes<quantized_tensor<Q, Space, ScaleSpace>> = Q::in_records;

/// The array that has the codes of a table, or its records.
template <class Table>
decltype(auto) stored(Table& table) {
  if constexpr (Table::quantization::in_records)
    return table.records();
  else
    return table.codes();
}
}  // namespace detail

}  // namespace ferry
