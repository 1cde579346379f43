// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Prefetchers of batches and of rows.
/// Includes ferry.hpp and all public headers of loader/.

#include <ferry/ferry.hpp>

#include <ferry/loader/batch_source.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/permutation.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/loader/prefetcher.hpp>
#include <ferry/loader/row_prefetcher.hpp>
