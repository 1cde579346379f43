// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Tables over several ranks: includes all headers of ferry/distributed. Opt-in; ferry.hpp does not include
/// it.

#include <ferry/ferry.hpp>

#include <ferry/distributed/all_reduce.hpp>
#include <ferry/distributed/catch_up.hpp>
#include <ferry/distributed/checkpoint.hpp>
#include <ferry/distributed/communication_error.hpp>
#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/concatenate.hpp>
#include <ferry/distributed/copy.hpp>
#include <ferry/distributed/copy_state.hpp>
#include <ferry/distributed/explain.hpp>
#include <ferry/distributed/gather.hpp>
#include <ferry/distributed/gather_bags.hpp>
#include <ferry/distributed/gather_rowwise_int8.hpp>
#include <ferry/distributed/gather_to.hpp>
#include <ferry/distributed/init.hpp>
#include <ferry/distributed/make_plan.hpp>
#include <ferry/distributed/make_state.hpp>
#include <ferry/distributed/open_shared.hpp>
#include <ferry/distributed/parallel_apply.hpp>
#include <ferry/distributed/replicate.hpp>
#include <ferry/distributed/scatter.hpp>
#include <ferry/distributed/scatter_add.hpp>
#include <ferry/distributed/sharded_plan.hpp>
#include <ferry/distributed/sharded_rowwise_int8.hpp>
#include <ferry/distributed/sharded_state.hpp>
#include <ferry/distributed/sharded_table.hpp>
#include <ferry/distributed/shardings/block.hpp>
#include <ferry/distributed/shardings/cyclic.hpp>
#include <ferry/distributed/shardings/hashed.hpp>
#include <ferry/distributed/shardings/replicated.hpp>
#include <ferry/distributed/shardings/table_wise.hpp>
#include <ferry/distributed/share.hpp>
#include <ferry/distributed/shared_handle.hpp>
#include <ferry/distributed/shared_tensor.hpp>
#include <ferry/distributed/split.hpp>
#include <ferry/distributed/step.hpp>
#include <ferry/distributed/step_bags.hpp>
#include <ferry/policy/reduce.hpp>
