// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The core umbrella: tensors, plans, rows, optimizers and policies, and the backends. bags.hpp, cache.hpp,
/// calibrate.hpp, quantized.hpp, io.hpp, loader.hpp and distributed.hpp next to it are the others; headers
/// of interop/ and compat/ are included one by one.

// First, so that compilers list few headers before the sentence that refuses a call.
#include <ferry/runtime/detail/argument_kinds.hpp>
#include <ferry/tensor/detail/tensor_memory.hpp>

#include <ferry/plan/detail/refusals.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/memory/statistics.hpp>
#include <ferry/optim/catch_up.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/optim/loss_scale.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/rules/adagrad.hpp>
#include <ferry/optim/rules/adam.hpp>
#include <ferry/optim/rules/lamb.hpp>
#include <ferry/optim/rules/nadam.hpp>
#include <ferry/optim/rules/rmsprop.hpp>
#include <ferry/optim/rules/sgd.hpp>
#include <ferry/optim/schedules.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/optim/transforms.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/plan/row_range.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/policy/overlap.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/policy/rounding.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/explain.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>
#include <ferry/rows/clone.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/copy_rows.hpp>
#include <ferry/rows/for_each_table.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/gather_unique.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/rows/init_scaled.hpp>
#include <ferry/rows/rows_along.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/rows/scatter_add.hpp>
#include <ferry/runtime/after.hpp>
#include <ferry/runtime/devices.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/runtime/trace.hpp>
#include <ferry/runtime/transfer_statistics.hpp>
#include <ferry/tensor/adopt.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/kokkos.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>
#include <ferry/version.hpp>

// The backends lie next to ferry.hpp where it is installed, next to include/ in the source tree.
#if __has_include("backends/enabled.hpp")
#include "backends/enabled.hpp"
#else
#include "../../backends/enabled.hpp"
#endif
