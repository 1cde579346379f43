// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// calibrate: measures what a machine_profile holds.
/// Includes ferry.hpp and all public headers of calibrate/.

#include <ferry/ferry.hpp>

#include <ferry/calibrate/calibrate.hpp>
