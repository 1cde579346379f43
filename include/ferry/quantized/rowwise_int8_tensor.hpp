// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>

namespace ferry {

/// A table of 8-bit rows, rowwise_int8_tensor<Space>: element (r, c) has the value
/// offset[r] + scale[r] * code(r, c), with codes of 0 to 255 and two floats per row. It needs about a quarter
/// of a float table's bytes, and so does a batch that travels. See quantization::rowwise_int8.
template <MemorySpace Space>
using rowwise_int8_tensor = quantized_tensor<quantization::rowwise_int8, Space, Space>;

}  // namespace ferry
