// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Bags of rows: gather_bags, step_bags and lists of tables.
/// Includes ferry.hpp and all public headers of bags/.

#include <ferry/ferry.hpp>

#include <ferry/bags/bag_grads.hpp>
#include <ferry/bags/for_each_table.hpp>
#include <ferry/bags/gather_bags.hpp>
#include <ferry/bags/step_bags.hpp>
