// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Exchange of arrays with other libraries by DLPack, in both directions and without copies. Opt-in: include
/// it next to ferry.hpp.

#include <ferry/interop/from_dlpack.hpp>
#include <ferry/interop/to_dlpack.hpp>
