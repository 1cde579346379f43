// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// Copies bytes from `source` to `target`, enqueued on `exec` and reported to Kokkos Tools under `label`.
/// Compiled for the execution spaces that Kokkos has.
template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes);

}  // namespace ferry::detail
