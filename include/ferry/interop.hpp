// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Arrays of other libraries: DLPack, array interfaces, DualViews, Thrust's vectors, mdspans, and matrices of
/// Eigen if that is installed.
/// Includes ferry.hpp and all public headers of interop/.

#include <ferry/ferry.hpp>

#include <ferry/interop/array_interface.hpp>
#include <ferry/interop/dlpack.hpp>
#include <ferry/interop/dual_view.hpp>
#if __has_include(<Eigen/Core>)
#include <ferry/interop/eigen.hpp>
#endif
#include <ferry/interop/mdspan.hpp>
#include <ferry/interop/read_only_tensor.hpp>
#include <ferry/interop/thrust.hpp>
