// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/gather_unique.hpp>

/// gather and gather_unique from a cached table, into a batch or a new tensor: rows of device memory and of
/// host memory by one kernel, after a small one that looks them up. With a plan and a batch in device memory
/// each different row is fetched once. Arguments, bits and errors are those of the verb on any table.
