// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/gather_bags.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>

/// gather_bags from a cached table. Arguments, bits and errors are those of gather_bags on any table.
