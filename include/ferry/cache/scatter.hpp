// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/rows/scatter.hpp>

/// scatter into a cached table: cached rows change in device memory alone, the others in host memory, by one
/// kernel. Arguments, bits and errors are those of scatter on any table.
