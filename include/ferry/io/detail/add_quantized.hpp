// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>

#include <string>

namespace ferry::detail {

/// Adds codes, scales and factor of a table to a checkpoint, all of them or none.
template <class Checkpoint, class Q, class Space, class ScaleSpace, class Drop>
void add_quantized(Checkpoint& run, const std::string& name, quantized_tensor<Q, Space, ScaleSpace>& table,
                   const Drop& drop) {
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
