// SPDX-License-Identifier: Apache-2.0
// Each source that nvcc compiles for a test includes this file first (docs/performance.md, "nvcc's front end").
//
// Catch2 puts `#pragma nv_diagnostic push` and `pop` around each assertion. nvcc 13.0 records a pop in the body of a member
// that is defined within its class as its own push, and then searches its record without end. Here an assertion has no push:
// what Catch2 suppresses with nvcc, warning 177 for the variable that registers a test, is set back by name.
#pragma once

#include <catch2/internal/catch_compiler_capabilities.hpp>

#ifdef __NVCC_DIAG_PRAGMA_SUPPORT__
#undef CATCH_INTERNAL_START_WARNINGS_SUPPRESSION
#undef CATCH_INTERNAL_STOP_WARNINGS_SUPPRESSION
#define CATCH_INTERNAL_START_WARNINGS_SUPPRESSION
#define CATCH_INTERNAL_STOP_WARNINGS_SUPPRESSION _Pragma("nv_diag_default 177")
#endif
