// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/idle_memory.hpp>

#include "registry.hpp"

#include <utility>

namespace ferry::detail {

bool is_within_budget(std::string_view account) {
  return memory_registry::get()->ledger_of(account).is_within_budget();
}

void add_idle_memory(std::string_view account, std::weak_ptr<idle_memory> pool) {
  memory_registry::get()->ledger_of(account).add_pool(std::move(pool));
}

}  // namespace ferry::detail
