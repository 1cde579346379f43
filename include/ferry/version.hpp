#pragma once

/// The version of ferry; CMake and the Conan recipe read it from this file.
#define FERRY_VERSION_MAJOR 0
#define FERRY_VERSION_MINOR 1
#define FERRY_VERSION_PATCH 0
