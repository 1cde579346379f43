// SPDX-License-Identifier: Apache-2.0
#pragma once

// CMake and the Conan recipe read the version from this file.

/// Major version of ferry.
#define FERRY_VERSION_MAJOR 0
/// Minor version of ferry.
#define FERRY_VERSION_MINOR 1
/// Patch version of ferry.
#define FERRY_VERSION_PATCH 0
