#pragma once

/// @file
/// SpeedTorch's classes on ferry's verbs, see docs/speedtorch.md. Include it next to ferry.hpp, which does not
/// include it.

#include <ferry/compat/co_occurrence.hpp>
#include <ferry/compat/data_gadget.hpp>
#include <ferry/compat/model_factory.hpp>
#include <ferry/compat/optimizer_factory.hpp>
