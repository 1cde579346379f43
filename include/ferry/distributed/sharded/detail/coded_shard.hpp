// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>

/// Shards as verbs write them.
namespace ferry::detail {

/// The shard of a quantized table, with the members of quantized_tensor. The table owns its memory.
template <class Table>
class coded_shard {
 public:
  using quantization = typename Table::quantization;
  using memory_space = typename Table::memory_space;
  using scale_space = typename Table::scale_space;

  coded_shard(Table& table, int rank) : table_(&table), rank_(rank) {}

  [[nodiscard]] std::size_t rows() const { return records().rows(); }
  [[nodiscard]] std::size_t width() const { return table_->width(); }
  [[nodiscard]] std::size_t blocks() const { return table_->blocks(); }
  [[nodiscard]] std::size_t row_bytes() const { return table_->row_bytes(); }
  [[nodiscard]] float scale() const { return table_->scale(); }
  [[nodiscard]] auto& records() const { return table_->stored().shard(rank_); }
  [[nodiscard]] auto& codes() const { return table_->stored().shard(rank_); }
  [[nodiscard]] auto& scales() const { return table_->scales().shard(rank_); }

 private:
  Table* table_;
  int rank_;
};

/// True if a sharded table, of either kind, has quantized rows.
template <class Table>
inline constexpr bool has_coded_rows = requires {
  typename Table::quantization;
};

/// The shard of a rank as verbs on ordinary tables take it.
template <class Table>
decltype(auto) shard_of(Table& table, int rank) {
  if constexpr (has_coded_rows<Table>)
    return coded_shard<Table>(table, rank);
  else
    return (table.shard(rank));
}

/// The addresser of a shard in a step.
template <class Table>
auto step_access_of_shard(Table& table, int rank) {
  auto&& shard = shard_of(table, rank);
  if constexpr (has_coded_rows<Table>)
    return weights_access<coded_shard<Table>>(shard, "step");
  else
    return step_access<decltype(shard)>(shard, "step");
}

/// Checks that kernels of Exec reach the scales; the codes are checked as rows of any table.
template <class Exec, class Table>
consteval void require_scales_of_shards() {
  if constexpr (has_coded_rows<Table>) require_reach<Exec, tensor<std::byte, typename Table::scale_space>>();
}

/// The ranks agree on the factor of a table.
template <class Table>
call_note& add_factor(call_note& note, [[maybe_unused]] const Table& table) {
  if constexpr (has_coded_rows<Table>)
    if constexpr (Table::quantization::has_tensor_scale) note.add_hidden(note_part::values, table.scale());
  return note;
}

}  // namespace ferry::detail
