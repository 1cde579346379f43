// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/rows/scatter_add.hpp>

/// scatter_add into a cached table. Arguments, bits and errors are those of scatter_add on any table.
