// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/shardings/cyclic.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry {

/// A table of 8-bit rows, see rowwise_int8_tensor, that is spread over the ranks of a communicator. gather
/// reads it: records travel, and the rank that asks converts them. Move-only.
///
///   ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", rows, 128);    // quantized or loaded
///   ferry::sharded_rowwise_int8<ferry::mapped_space> big("codes", comm, rows, 128);
///   ferry::copy(exec, codes.records(), big.records()).wait();
///   ferry::gather(exec, big, indices, batch).wait();
template <MemorySpace Space, class Spread = sharding::cyclic>
class sharded_rowwise_int8 {
 public:
  using memory_space = Space;    ///< where the shards lie
  using sharding_type = Spread;  ///< how the rows are spread
  /// The records as a table of bytes.
  using records_type = sharded_table<std::byte, Space, Spread>;

  /// Allocates the shards; arguments, errors and meaning are those of sharded_table.
  template <std::integral Rows, std::integral Width>
  sharded_rowwise_int8(std::string label, const communicator& comm, Rows rows, Width width,
                       Spread spread = {})
      : width_(static_cast<std::size_t>(width)),
        records_(std::move(label), comm, rows, bytes_of(width), spread) {}

  /// Rows of the whole table.
  [[nodiscard]] std::size_t rows() const noexcept { return records_.rows(); }
  /// Elements of a row.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  /// Bytes of a row's record.
  [[nodiscard]] std::size_t row_bytes() const noexcept { return records_.width(); }
  /// The label given to the constructor.
  [[nodiscard]] const std::string& label() const noexcept { return records_.label(); }
  /// The group of ranks.
  [[nodiscard]] const communicator& comm() const noexcept { return records_.comm(); }
  /// Label, extents of the records, sharding and the number of ranks, as text.
  [[nodiscard]] std::string describe() const { return records_.describe(); }

  /// The storage, rows() x row_bytes() bytes: copy it to and from arrays of all records, make plans for it.
  /// @{
  [[nodiscard]] records_type& records() noexcept { return records_; }
  [[nodiscard]] const records_type& records() const noexcept { return records_; }
  /// @}

 private:
  /// A width that no table has stays one.
  template <std::integral Width>
  static std::int64_t bytes_of(Width width) {
    if (!std::in_range<std::int64_t>(width) || std::cmp_less(width, 0) ||
        std::cmp_greater(width, std::int64_t{1} << 60))
      return -1;
    return static_cast<std::int64_t>(
        rowwise_int8_tensor<Space>::record_bytes(static_cast<std::size_t>(width)));
  }

  std::size_t width_;
  records_type records_;
};

}  // namespace ferry

template <class Space, class Spread>
inline constexpr bool ferry::detail::is_table_object<ferry::sharded_rowwise_int8<Space, Spread>> = true;
