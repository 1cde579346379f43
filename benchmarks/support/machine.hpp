// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report.hpp"

#include <cstddef>

namespace ferry_bench {

/// Processor, memory, kernel and driver, as Linux tells them.
facts describe_machine();

/// Memory that programs can still have.
std::size_t free_host_bytes();

}  // namespace ferry_bench
