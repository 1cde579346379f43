// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

/// Quantized rows in the shards of several ranks: their addresser.
namespace ferry::kernels {

/// The codes and scales of a sharded table, as kernels read them. A row is named by a number of
/// rows_in_shards.
template <class Q>
struct codes_of_shards : coded_blocks<Q> {
  const std::byte* codes[most_shards];
  const typename Q::scale_type* scales[has_scales<Q> ? most_shards : 1];
  const std::byte* ends[most_shards];  ///< of the codes

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION readable_memory memory_of(std::int64_t row) const {
    const auto shard = row % most_shards;
    return {reinterpret_cast<std::uintptr_t>(codes[shard]), reinterpret_cast<std::uintptr_t>(ends[shard])};
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const std::byte* codes_of(std::int64_t row) const {
    return codes[row % most_shards] + row / most_shards * this->row_bytes;
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const typename Q::scale_type* scales_of(
      [[maybe_unused]] std::int64_t row) const {
    if constexpr (has_scales<Q>)
      return scales[row % most_shards] + row / most_shards * this->blocks;
    else
      return scales[0];
  }
  [[nodiscard]] bool is_aligned(int bytes) const {
    return std::all_of(codes, codes + most_shards,
                       [&](const std::byte* shard) { return this->is_aligned_from(shard, bytes); });
  }
  [[nodiscard]] std::int64_t units_of_row() const {
    std::int64_t most = 1;
    for (const std::byte* shard : codes) most = std::max(most, this->units_from(shard));
    return most;
  }
};

/// A source of rows of a sharded table as numbers of both: the shard, and the row of the shard.
template <class Source, class Spread>
struct rows_in_shards {
  Source source;
  Spread spread;
  std::int64_t rows;
  int ranks;
  int only;  ///< the shard that has all rows, -1 for none

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t row = source.row(item, record);
    if (row < 0) return row;
    const int owner = only >= 0 ? only : spread.owner(row, rows, ranks);
    return spread.local_row(row, rows, ranks) * most_shards + owner;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The shards of codes and scales, as launch_gather reads them.
template <class Q, class Space, class Spread>
struct reached_codes {
  using value_type = typename Q::code_type;
  using scale_type = std::conditional_t<has_scales<Q>, typename Q::scale_type, float>;

  reached_shards<value_type, Spread> codes;
  reached_shards<scale_type, Spread> scales;
  float tensor_scale;

  [[nodiscard]] kernels::codes_of_shards<Q> for_kernels() const {
    kernels::codes_of_shards<Q> table{};
    if constexpr (has_scales<Q>) std::copy(scales.data.begin(), scales.data.end(), table.scales);
    table.row_bytes = codes.width * static_cast<std::int64_t>(sizeof(value_type));
    for (std::size_t r = 0; r < codes.data.size(); ++r) {
      if (codes.data[r] == nullptr) continue;
      table.codes[r] = reinterpret_cast<const std::byte*>(codes.data[r]);
      table.ends[r] = table.codes[r] + codes.rows_of[r] * table.row_bytes;
    }
    table.blocks = scales.width;
    table.tensor_scale = tensor_scale;
    return table;
  }
  template <class Source>
  [[nodiscard]] kernels::rows_in_shards<Source, Spread> placed(const Source& source) const {
    return {source, codes.spread, codes.rows, codes.ranks, codes.only};
  }
};

template <class Exec, class Q, class RowSpace, class Spread, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const reached_codes<Q, RowSpace, Spread>& rows,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  launch_decode(exec, label, rows.for_kernels(), RowSpace::is_host_accessible, out, rows.placed(source),
                items, order);
}

/// The shards of records, as launch_gather reads them.
template <class Spread>
struct reached_records {
  using value_type = std::byte;

  reached_shards<std::byte, Spread> shards;
};

/// For kernels that pool: rows of bytes.
template <class Spread>
const reached_shards<std::byte, Spread>& pooled_rows(const reached_records<Spread>& rows) {
  return rows.shards;
}
template <class Exec, class Spread, class Out, class Space, class Source, class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const reached_records<Spread>& rows,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  kernels::coded_memory<quantization::rowwise_int8> table;
  table.codes = rows.shards.lowest;
  table.row_bytes = out.width();
  table.record_bytes = 1;
  launch_decode(exec, label, table, Space::is_host_accessible, out, rows.shards.source_in(1, source), items,
                order);
}

template <class Q, class Space, class ScaleSpace, class Spread>
class peer_rows<sharded_quantized_table<Q, Space, ScaleSpace, Spread>>
    : public rows_of_kernels<typename Q::code_type, Space> {
  using table_type = sharded_quantized_table<Q, Space, ScaleSpace, Spread>;

 public:
  using gathered = float;

  explicit peer_rows(const table_type& shards) : shards_(shards), whole_(whole_ref(shards)) {}

  [[nodiscard]] const array_ref<typename Q::code_type, Space>& table() const { return whole_; }
  [[nodiscard]] std::int64_t row_bytes() const { return static_cast<std::int64_t>(shards_.row_bytes()); }

  template <class Exec>
  auto rows(launch_context<Exec>& call) const {
    if constexpr (Q::in_records) {
      return reached_records<kernel_sharding<Spread>>{reach_shards(call, shards_.records())};
    } else {
      reached_codes<Q, Space, kernel_sharding<Spread>> reached{
          reach_shards(call, shards_.codes()), {}, shards_.scale()};
      if constexpr (has_scales<Q>) reached.scales = reach_shards(call, shards_.scales());
      return reached;
    }
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

 private:
  const table_type& shards_;
  array_ref<typename Q::code_type, Space> whole_;
};

}  // namespace ferry::detail
