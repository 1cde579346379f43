// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>

/// step_bags on a cached table. Arguments, bits and errors are those of step_bags on any table.
