// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The former name of quantized.hpp.

#include <ferry/quantized.hpp>
