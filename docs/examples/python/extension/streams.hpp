// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry_tables {

using exec_space = Kokkos::DefaultExecutionSpace;

/// The instance of a stream, as Python's array API numbers streams: 1 is the legacy default stream, 2 that of
/// the thread, others are handles. On a host backend there is one instance. Kept until finalize().
exec_space instance_of(std::uintptr_t stream);

}  // namespace ferry_tables
