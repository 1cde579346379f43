#pragma once

/// ferry moves tensor rows between memory spaces. This header brings all of it, and is the only one that
/// knows of the backends.

#include <ferry/algorithm/calibrate.hpp>
#include <ferry/algorithm/catch_up.hpp>
#include <ferry/algorithm/clone.hpp>
#include <ferry/algorithm/copy.hpp>
#include <ferry/algorithm/dequantize.hpp>
#include <ferry/algorithm/explain.hpp>
#include <ferry/algorithm/gather.hpp>
#include <ferry/algorithm/gather_rowwise_int8.hpp>
#include <ferry/algorithm/gather_to.hpp>
#include <ferry/algorithm/init.hpp>
#include <ferry/algorithm/make_plan.hpp>
#include <ferry/algorithm/make_records.hpp>
#include <ferry/algorithm/make_state.hpp>
#include <ferry/algorithm/plan_workspace_bytes.hpp>
#include <ferry/algorithm/quantize.hpp>
#include <ferry/algorithm/scatter.hpp>
#include <ferry/algorithm/scatter_add.hpp>
#include <ferry/algorithm/scatter_rowwise_int8.hpp>
#include <ferry/algorithm/step.hpp>
#include <ferry/error.hpp>
#include <ferry/execution/after.hpp>
#include <ferry/execution/current_profile.hpp>
#include <ferry/execution/explanation.hpp>
#include <ferry/execution/future.hpp>
#include <ferry/execution/machine_profile.hpp>
#include <ferry/execution/path.hpp>
#include <ferry/execution/policies.hpp>
#include <ferry/execution/route.hpp>
#include <ferry/execution/ticket.hpp>
#include <ferry/index/bounds.hpp>
#include <ferry/index/duplicates.hpp>
#include <ferry/index/row_plan.hpp>
#include <ferry/memory/adopt.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/budget.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/memory/statistics.hpp>
#include <ferry/memory/trim.hpp>
#include <ferry/optim/adadelta.hpp>
#include <ferry/optim/adagrad.hpp>
#include <ferry/optim/adam.hpp>
#include <ferry/optim/adamax.hpp>
#include <ferry/optim/adamw.hpp>
#include <ferry/optim/asgd.hpp>
#include <ferry/optim/clip_norm.hpp>
#include <ferry/optim/clip_value.hpp>
#include <ferry/optim/frozen_rows.hpp>
#include <ferry/optim/ftrl.hpp>
#include <ferry/optim/grad_scale.hpp>
#include <ferry/optim/lamb.hpp>
#include <ferry/optim/lars.hpp>
#include <ferry/optim/lion.hpp>
#include <ferry/optim/max_norm.hpp>
#include <ferry/optim/nadam.hpp>
#include <ferry/optim/nonfinite.hpp>
#include <ferry/optim/partial_rowwise_adam.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/rmsprop.hpp>
#include <ferry/optim/rounding.hpp>
#include <ferry/optim/row_rates.hpp>
#include <ferry/optim/rowwise_adagrad.hpp>
#include <ferry/optim/rprop.hpp>
#include <ferry/optim/sgd.hpp>
#include <ferry/optim/sparse_adam.hpp>
#include <ferry/optim/staged.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/optim/step_count.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/kokkos.hpp>
#include <ferry/tensor/rowwise_int8_tensor.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_slice.hpp>
#include <ferry/tensor/tensor_view.hpp>
#include <ferry/version.hpp>

// Beside ferry.hpp where installed, beside include/ in the source tree.
#if __has_include("backends/enabled.hpp")
#include "backends/enabled.hpp"
#else
#include "../../backends/enabled.hpp"
#endif
