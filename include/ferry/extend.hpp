// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The inside of ferry::ferry that other libraries build on: ferry::io, which needs no more than this and the
/// public headers, and programs with kinds of tables or rules of their own. ferry::extend lists the names.
/// Other names of ferry::detail change without notice.
///
/// Some names stay in their namespaces. ferry::detail::is_table_object and ferry::detail::table_access are
/// specialised for a kind of table (rows/detail/row_access.hpp lists the members). ferry::random has numbers
/// that are functions of a seed and a position. ferry::device_backend and ferry::execution_backend are
/// described in docs/backends.md.

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/optim/detail/coefficient_history.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/detail/addressed_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

namespace ferry::extend {

/// Arrays as verbs see them: extents, strides, label and record of use, with and without their types.
/// @{
using detail::array_label, detail::array_note, detail::array_ref, detail::array_shape, detail::dense_rows,
    detail::host_element, detail::read_only, detail::untyped_array;
/// @}

/// Kinds of tables: addressers, and the jobs that verbs run on their rows.
/// @{
using detail::addressed_job, detail::bytes_of_rows, detail::located_job, detail::plan_order,
    detail::plan_storage, detail::RowAccess, detail::rows_for_reading, detail::rows_of_kernels,
    detail::touch_arrays, detail::validate_rows;
using kernels::addressed_table;
namespace schedule = detail::schedule;
/// @}

/// Calls of verbs: checks of their arguments, the instance with its engine, launches and copies.
/// @{
using detail::engine, detail::host_side, detail::is_host_exec, detail::launch, detail::launch_context,
    detail::memory_home, detail::require_batch, detail::require_dense_rows, detail::require_direct_reach,
    detail::require_execution_space, detail::require_kokkos, detail::require_mutable,
    detail::require_own_kokkos, detail::require_reach, detail::require_rows, detail::transfer;
/// @}

/// Work in flight: who reads and writes an array, events, the states behind tickets, and their findings.
/// @{
using detail::access_tracker, detail::event, detail::event_handle, detail::has_ended, detail::instance_id,
    detail::ticket_state, detail::ticket_state_handle, detail::ticket_state_keeper, detail::unheard_findings;
/// @}

/// Rules of one's own in files: their options one by one, and what a state counts.
/// @{
using detail::is_number_list, detail::option_name, detail::option_names, detail::visit_options;
using optim::coefficient_history, optim::step_counters;
/// @}

/// Threads of the host, files, and what a process has once.
/// @{
using detail::atomic_file, detail::call_at_finalize, detail::file, detail::function_ref, detail::parallel,
    detail::process_identity, detail::process_mark, detail::until_finalize;
/// @}

}  // namespace ferry::extend
