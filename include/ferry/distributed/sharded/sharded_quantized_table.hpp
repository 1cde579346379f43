// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/shardings.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/extents.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace ferry {

namespace detail {

template <Quantization Q, class Space, class Spread>
using sharded_scales_of = typename std::conditional_t<
    has_scale_array<Q>,
    std::type_identity<
        sharded_table<std::conditional_t<has_scale_array<Q>, typename Q::scale_type, float>, Space, Spread>>,
    std::type_identity<no_scale>>::type;

}  // namespace detail

/// A table of quantized rows, see quantized_tensor, that is spread over the ranks of a communicator:
///
///   sharded_quantized_table<quantization::mxfp8, mapped_space> big("w", comm, rows, 256);
///   quantize(exec, values, big).wait();          // an array of all rows, or a sharded_table of floats
///   gather(exec, big, indices, batch).wait();    // decodes
///   scatter(exec, big, indices, batch).wait();   // encodes
///   step(exec, rule, big, state, indices, grads, rounding::stochastic{}).wait();
///
///   Q           how numbers are encoded
///   Space       where the codes lie
///   ScaleSpace  where the scales lie; that of the codes by default. Records have one memory space
///   Spread      how the rows are spread
///
/// Codes and scales are sharded tables of the same sharding, and with quantization::rowwise_int8 records are
/// one. Verbs on those read and write them as they are. Calls are collective as those of sharded_table.
/// Move-only.
template <Quantization Q, MemorySpace Space, MemorySpace ScaleSpace = Space, class Spread = sharding::cyclic>
class sharded_quantized_table {
  static_assert(
      !Q::in_records || (std::is_same_v<Space, ScaleSpace> && std::is_same_v<Q, quantization::rowwise_int8>),
      "ferry: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space; other quantizations keep scales in an array.");

 public:
  using quantization = Q;                     ///< how numbers are encoded
  using memory_space = Space;                 ///< where the codes lie
  using scale_space = ScaleSpace;             ///< where the scales lie
  using sharding_type = Spread;               ///< how the rows are spread
  using code_type = typename Q::code_type;    ///< elements of codes()
  using scale_type = typename Q::scale_type;  ///< elements of scales()
  using value_type = code_type;               ///< elements of the codes, or std::byte of the records
  /// The codes, or the records, as a table.
  using codes_type = sharded_table<code_type, Space, Spread>;
  using records_type = codes_type;  ///< the records as a table of bytes

  /// Allocates the shards; arguments, errors and meaning are those of sharded_table. Throws invalid_argument
  /// also for a width that does not consist of whole blocks and whole elements of codes().
  template <std::integral Rows, std::integral Width>
  sharded_quantized_table(const std::string& label, const communicator& comm, Rows rows, Width width,
                          Spread spread = {})
      : width_(checked_width(label, comm, rows, width)),
        codes_(label, comm, rows, detail::stored_columns<Q>(width_), spread),
        scales_(make_scales(label, comm, rows, width_, spread)) {}
  /// Refuses arguments without a label. Does not compile.
  template <std::integral Rows, std::integral Width>
  sharded_quantized_table(const communicator& comm, Rows, Width, Spread = {})
      : codes_(std::string(), comm, 0, 0), scales_(make_scales({}, comm, 0, 0, {})) {
    detail::refuse_sharded_table<communicator, Rows>();
  }

  /// Rows of the whole table.
  [[nodiscard]] std::size_t rows() const noexcept { return codes_.rows(); }
  /// Numbers of a row.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  /// Extent i of the numbers, 1 for i >= 2.
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i == 0 ? rows() : i == 1 ? width() : 1;
  }
  /// Number of extents.
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 2; }
  /// Numbers of the whole table.
  [[nodiscard]] std::size_t size() const noexcept { return rows() * width(); }
  /// Scales of a row.
  [[nodiscard]] std::size_t blocks() const noexcept { return detail::blocks_of<Q>(width_); }
  /// Bytes of a row: codes and scales, or its record.
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    const std::size_t code_bytes = codes_.width() * sizeof(code_type);
    if constexpr (detail::has_scale_array<Q>)
      return code_bytes + blocks() * sizeof(scale_type);
    else
      return code_bytes;
  }
  /// The label given to the constructor.
  [[nodiscard]] const std::string& label() const noexcept { return codes_.label(); }
  /// The group of ranks.
  [[nodiscard]] const communicator& comm() const noexcept { return codes_.comm(); }
  /// How the rows are spread.
  [[nodiscard]] const Spread& sharding() const noexcept { return codes_.sharding(); }
  /// The rank that has row `row`, for a row of [0, rows()).
  [[nodiscard]] int owner(std::int64_t row) const { return codes_.owner(row); }
  /// The place of the row in the shard of its owner.
  [[nodiscard]] std::int64_t local_row(std::int64_t row) const { return codes_.local_row(row); }
  /// The row at a place of the shard of a rank.
  [[nodiscard]] std::int64_t global_row(int rank, std::int64_t local) const {
    return codes_.global_row(rank, local);
  }
  /// Rows of the shard of a rank.
  [[nodiscard]] std::int64_t rows_of(int rank) const { return codes_.rows_of(rank); }
  /// True if this object holds the shard of a rank.
  [[nodiscard]] bool holds(int rank) const { return codes_.holds(rank); }
  /// Label, extents of the numbers, sharding, the number of ranks and the quantization, as text.
  [[nodiscard]] std::string describe() const {
    return detail::joined("'", label(), "' [", rows(), " x ", width(), "] of ", Q::name, " in ", Space::name,
                          ", ", Spread::name, " over ", comm().size(), " ranks");
  }

  /// The codes, rows() x the columns of quantized_tensor::codes().
  /// @{
  [[nodiscard]] codes_type& codes() noexcept requires(!Q::in_records) { return codes_; }
  [[nodiscard]] const codes_type& codes() const noexcept requires(!Q::in_records) { return codes_; }
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
  /// The records of quantization::rowwise_int8, rows() x row_bytes() bytes: copy it to and from arrays of all
  /// records, make plans for it.
  /// @{
  [[nodiscard]] records_type& records() noexcept requires(Q::in_records) { return codes_; }
  [[nodiscard]] const records_type& records() const noexcept requires(Q::in_records) { return codes_; }
  /// @}
  /// The factor of all numbers; 1 until it is set. Verbs read it when they are called.
  [[nodiscard]] float scale() const noexcept { return factor_ == nullptr ? 1.0f : *factor_; }
  /// Sets the factor of all numbers of this object; ranks that hold objects of their own set the same one.
  /// Codes and scales stay as they are. Throws invalid_argument unless it is positive and finite.
  void set_scale(float factor) {
    static_assert(
        Q::has_tensor_scale,
        "ferry: numbers of this quantization have no factor for the table; quantization::e4m3, e5m2 and nvfp4 have one.");
    detail::require_factor(label(), factor);
    *detail::factor_of(*this) = factor;
  }

  /// The codes, or the records; for the verbs.
  /// @{
  [[nodiscard]] codes_type& stored() noexcept { return codes_; }
  [[nodiscard]] const codes_type& stored() const noexcept { return codes_; }
  /// @}
  /// The label as tensors share it; for the verbs.
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept {
    return codes_.shared_label();
  }
  /// Number of the codes in their group, the same on all ranks; for the verbs.
  [[nodiscard]] std::uint64_t number() const noexcept { return codes_.number(); }

 private:
  using scales_table = detail::sharded_scales_of<Q, ScaleSpace, Spread>;

  /// The width, on which all ranks agree before they make shards.
  static std::size_t checked_width(const std::string& label, const communicator& comm,
                                   std::integral auto rows, std::integral auto width) {
    detail::call_note note("sharded_quantized_table '");
    note.add(label).add("'").add_number(rows).add(" x").add_number(width).add(" of ").add(Q::name);
    note.add_hidden(detail::note_part::types, typeid(sharded_quantized_table).hash_code());
    detail::collective call(comm, note);
    return call.guarded([&] {
      const auto extents = detail::checked_extents(label, 1, width);
      const std::size_t numbers = detail::quantized_width<Q>(label, extents);
      call.agree();
      return numbers;
    });
  }
  static scales_table make_scales([[maybe_unused]] const std::string& label,
                                  [[maybe_unused]] const communicator& comm,
                                  [[maybe_unused]] std::integral auto rows,
                                  [[maybe_unused]] std::size_t width, [[maybe_unused]] const Spread& spread) {
    if constexpr (detail::has_scale_array<Q>)
      return scales_table(detail::joined(label, " (scales)"), comm, rows, detail::blocks_of<Q>(width),
                          spread);
    else
      return {};
  }

  std::size_t width_ = 0;
  codes_type codes_;
  scales_table scales_;
  std::unique_ptr<float> factor_;  // keeps its place when the table is moved; null: 1

  template <class Table>
  friend float* detail::factor_of(Table& table);
};

/// The table of quantization::rowwise_int8:
///
///   ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", rows, 128);    // quantized or loaded
///   ferry::sharded_rowwise_int8<ferry::mapped_space> big("codes", comm, rows, 128);
///   ferry::copy(exec, codes, big).wait();
template <MemorySpace Space, class Spread = sharding::cyclic>
using sharded_rowwise_int8 = sharded_quantized_table<quantization::rowwise_int8, Space, Space, Spread>;

namespace detail {

template <class Q, class Space, class ScaleSpace, class Spread>
inline constexpr bool is_table_object<sharded_quantized_table<Q, Space, ScaleSpace, Spread>> = true;
template <class Q, class Space, class ScaleSpace, class Spread>
inline constexpr bool is_sharded_rows<sharded_quantized_table<Q, Space, ScaleSpace, Spread>> = true;

}  // namespace detail
}  // namespace ferry
