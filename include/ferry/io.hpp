// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Files and checkpoints.
/// Includes ferry.hpp and all public headers of io/.

#include <ferry/ferry.hpp>

#include <ferry/io/checkpoint.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/file_table.hpp>
#include <ferry/io/load_npy.hpp>
#include <ferry/io/safetensors_file.hpp>
#include <ferry/io/save_npy.hpp>
#include <ferry/io/save_safetensors.hpp>
