// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The classes of SpeedTorch.
/// Includes ferry.hpp and all public headers of compat/.

#include <ferry/ferry.hpp>

#include <ferry/compat/co_occurrence.hpp>
#include <ferry/compat/model_factory.hpp>
#include <ferry/compat/optimizer_factory.hpp>
#include <ferry/compat/speedtorch.hpp>
