// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/transfer.hpp>

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include "../../backends/enabled.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes) {
  if (bytes <= 0) return;
  const transfer_region region(target_space, target, source_space, source, static_cast<std::size_t>(bytes),
                               label);
  execution_backend<Exec>::copy_async(exec, label, target, source, static_cast<std::size_t>(bytes));
}

#define FERRY_TRANSFER_ON(EXEC)                                                                \
  template void transfer<EXEC>(const EXEC&, const char*, void*, std::string_view, const void*, \
                               std::string_view, std::int64_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_TRANSFER_ON)
#undef FERRY_TRANSFER_ON

}  // namespace ferry::detail
