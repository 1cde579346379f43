// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/budget.hpp>

#include "registry.hpp"

namespace ferry::detail {

void set_budget_of(std::string_view account, std::size_t bytes) {
  memory_registry::get()->ledger_of(account).set_budget(bytes);
}

}  // namespace ferry::detail
