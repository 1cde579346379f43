// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/scatter.hpp>

/// scatter to a table of quantized rows: row indices[p] = values[p], encoded as its quantization says. A row
/// is replaced as a whole, so its blocks get new scales; a factor of the table stays. Arguments and errors
/// are those of scatter for any table; duplicates::sum and duplicates::mean combine in the accumulation type,
/// before rows are encoded once. A batch with bad indices leaves the table unchanged. The execution space
/// encodes, and codes and scales travel. Records are encoded where they lie if the table is in its memory and
/// the path is direct.
