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
/// described in backends/README.md.

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/atomic_file.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
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
#include <ferry/runtime/detail/require_process.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_label.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/host_element.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

namespace ferry::extend {

/// Arrays as verbs see them: extents, strides, label and record of use, with and without their types.
/// @{
using detail::array_label;
using detail::array_note;
using detail::array_ref;
using detail::array_shape;
using detail::dense_rows;
using detail::host_element;
using detail::read_only;
using detail::untyped_array;
/// @}

/// Kinds of tables: addressers, and the jobs that verbs run on their rows.
/// @{
using detail::addressed_job;
using detail::bytes_of_rows;
using detail::located_job;
using detail::plan_order;
using detail::plan_storage;
using detail::RowAccess;
using detail::rows_for_reading;
using detail::rows_of_kernels;
using detail::touch_arrays;
using detail::validate_rows;
using kernels::addressed_table;
namespace schedule = detail::schedule;
/// @}

/// Calls of verbs: checks of their arguments, the instance with its engine, launches and copies.
/// @{
using detail::engine;
using detail::host_side;
using detail::is_host_exec;
using detail::launch;
using detail::launch_context;
using detail::memory_home;
using detail::require_batch;
using detail::require_dense_rows;
using detail::require_direct_reach;
using detail::require_execution_space;
using detail::require_kokkos;
using detail::require_mutable;
using detail::require_own_kokkos;
using detail::require_reach;
using detail::require_rows;
using detail::transfer;
/// @}

/// Work in flight: who reads and writes an array, events, the states behind tickets, and their findings.
/// @{
using detail::access_tracker;
using detail::event;
using detail::event_handle;
using detail::has_ended;
using detail::instance_id;
using detail::ticket_state;
using detail::ticket_state_handle;
using detail::ticket_state_keeper;
using detail::unheard_findings;
/// @}

/// Rules of one's own in files: their options one by one, and what a state counts.
/// @{
using detail::is_number_list;
using detail::option_name;
using detail::option_names;
using detail::visit_options;
using optim::coefficient_history;
using optim::step_counters;
/// @}

/// Threads of the host, files, and what a process has once.
/// @{
using detail::atomic_file;
using detail::file;
using detail::function_ref;
using detail::parallel;
using detail::process_identity;
using detail::process_mark;
using detail::process_runtime;
using detail::until_finalize;
/// @}

}  // namespace ferry::extend
