// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>

#include <string>

namespace ferry::detail {

/// True if T is a table whose codes, scales and factor are entries of their own.
template <class T>
inline constexpr bool is_kept_in_parts = false;
template <class Q, class Space, class ScaleSpace>
inline constexpr bool is_kept_in_parts<quantized_tensor<Q, Space, ScaleSpace>> = !Q::in_records;

/// Adds codes, scales and factor of a table to a checkpoint, all of them or none.
template <class Checkpoint, class Table, class Drop>
void add_quantized(Checkpoint& run, const std::string& name, Table& table, const Drop& drop) {
  using Q = typename Table::quantization;
  run.add(name + "/codes", table.codes());
  [[maybe_unused]] bool has_entry_of_scales = false;
  try {
    if constexpr (has_scales<Q>) {
      run.add(name + "/scales", table.scales());
      has_entry_of_scales = true;
    }
    if constexpr (Q::has_tensor_scale) run.add(name + "/scale", *factor_of(table));
  } catch (...) {
    drop(name + "/codes");
    if (has_entry_of_scales) drop(name + "/scales");
    throw;
  }
}

}  // namespace ferry::detail
