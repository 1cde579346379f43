// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Tables of rows in low precision.
/// Includes ferry.hpp and all public headers of quantized/.

#include <ferry/ferry.hpp>

#include <ferry/quantized/copy_rows.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantizations/fp8.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantize.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/quantized/verbs.hpp>
