// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// Copies bytes from `from` to `to`, enqueued on `exec` and reported to Kokkos Tools under `label`. Compiled
/// for the execution spaces that Kokkos has.
template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* to, std::string_view to_space, const void* from,
              std::string_view from_space, std::int64_t bytes);

}  // namespace ferry::detail
