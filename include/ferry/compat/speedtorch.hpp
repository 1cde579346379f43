// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// SpeedTorch's classes on ferry's verbs, see docs/speedtorch.md. Opt-in: include it next to ferry.hpp.

#include <ferry/compat/co_occurrence.hpp>
#include <ferry/compat/model_factory.hpp>
#include <ferry/compat/optimizer_factory.hpp>
