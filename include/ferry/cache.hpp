// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Cached tables: hot rows in device memory, in front of a table in host memory.
/// Includes ferry.hpp and all public headers of cache/.

#include <ferry/ferry.hpp>

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/catch_up.hpp>
#include <ferry/cache/copy.hpp>
#include <ferry/cache/explain.hpp>
#include <ferry/cache/first.hpp>
#include <ferry/cache/fixed.hpp>
#include <ferry/cache/frequency.hpp>
#include <ferry/cache/gather.hpp>
#include <ferry/cache/gather_bags.hpp>
#include <ferry/cache/init.hpp>
#include <ferry/cache/lru.hpp>
#include <ferry/cache/resolve.hpp>
#include <ferry/cache/scatter.hpp>
#include <ferry/cache/scatter_add.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/cache/step.hpp>
#include <ferry/cache/step_bags.hpp>
