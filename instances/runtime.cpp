// SPDX-License-Identifier: Apache-2.0
// The functions of ferry that are no templates.
#define FERRY_DEFINES_RUNTIME
#include "prebuilt.hpp"
