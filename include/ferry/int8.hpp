// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Tables of 8-bit rows.
/// Includes ferry.hpp and all public headers of int8/.

#include <ferry/ferry.hpp>

#include <ferry/int8/dequantize.hpp>
#include <ferry/int8/gather.hpp>
#include <ferry/int8/quantize.hpp>
#include <ferry/int8/rowwise_int8_tensor.hpp>
#include <ferry/int8/scatter.hpp>
