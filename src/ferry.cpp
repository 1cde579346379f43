// SPDX-License-Identifier: Apache-2.0
// The compiled half as one source, for builds without CMake: add include/ to the include directories and this
// file to the sources. CMake compiles the files below instead. Programs with files or loaders add ferry_io.cpp,
// those with ranks ferry_io.cpp and ferry_distributed.cpp.
#if !defined(FERRY_DISPATCH_AVX2)
#define FERRY_DISPATCH_AVX2 1
#endif
#include "../backends/enabled.cpp"

#include "bags/bag_arguments.cpp"
#include "cache/refresh_rows.cpp"
#include "cache/resolve_rows.cpp"
#include "cache/row_cache.cpp"
#include "error.cpp"
#include "interop/dlpack.cpp"
#include "memory/access_tracker.cpp"
#include "memory/block_cache.cpp"
#include "memory/file.cpp"
#include "memory/ledger.cpp"
#include "memory/process_wide.cpp"
#include "memory/tools.cpp"
#include "optim/options.cpp"
#include "optim/state.cpp"
#include "plan/make_plan.cpp"
#include "plan/row_plan.cpp"
#include "profile/current_profile.cpp"
#include "profile/path_rule.cpp"
#include "quantized/extents.cpp"
#include "rows/copy.cpp"
#include "rows/copy_rows.cpp"
#include "rows/drawn_floats.cpp"
#include "runtime/engine.cpp"
#include "runtime/findings.cpp"
#include "runtime/launch_context.cpp"
#include "runtime/parallel.cpp"
#include "runtime/space_engine.cpp"
#include "runtime/ticket.cpp"
#include "tensor/array_ref.cpp"

#if defined(FERRY_LIBRARY_HAS_VERBS)
#include "instances/adagrad.cpp"
#include "instances/adam.cpp"
#include "instances/rows.cpp"
#include "instances/rowwise_adagrad.cpp"
#include "instances/sgd.cpp"
#endif
