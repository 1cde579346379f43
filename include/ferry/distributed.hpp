// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Tables over several ranks: includes all headers of ferry/distributed. Opt-in; ferry.hpp does not include
/// it.

#include <ferry/ferry.hpp>

#include <ferry/distributed/collectives/all_reduce.hpp>
#include <ferry/distributed/collectives/data_parallel.hpp>
#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/catch_up.hpp>
#include <ferry/distributed/sharded/checkpoint.hpp>
#include <ferry/distributed/sharded/copy.hpp>
#include <ferry/distributed/sharded/explain.hpp>
#include <ferry/distributed/sharded/for_each_table.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/gather_bags.hpp>
#include <ferry/distributed/sharded/grad_norm.hpp>
#include <ferry/distributed/sharded/init.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/make_state.hpp>
#include <ferry/distributed/sharded/quantize.hpp>
#include <ferry/distributed/sharded/scatter.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/shardings.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/distributed/sharded/step_bags.hpp>
#include <ferry/distributed/shared/share.hpp>
#include <ferry/distributed/shared/shared_tensor.hpp>
#include <ferry/policy/reduce.hpp>
