// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/step.hpp>

/// step on a cached table, of rows or of records: see the step on any table. Weights and state of cached rows
/// change in device memory alone; state in host memory is cached from the first step on, and belongs to the
/// cache as the table does. So are counters of rows (step_count::per_row, catch_up). Weights and state of
/// cached records lie together in device memory. Bits and errors are those without a cache. make_state takes
/// a cached table, too.

namespace ferry::optim::detail {

template <class Table, class Policy>
struct default_state<cached_table<Table, Policy>> : default_state<Table> {};

}  // namespace ferry::optim::detail
