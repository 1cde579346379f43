// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Cached tables: hot rows in device memory, in front of a table in host memory.
/// Includes ferry.hpp and all public headers of cache/.

#include <ferry/ferry.hpp>

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/explain.hpp>
#include <ferry/cache/lru.hpp>
#include <ferry/cache/resolve.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/cache/verbs.hpp>
