// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ledger.hpp"

#include <ferry/memory/detail/idle_memory.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// The accounts of all memory spaces. Every live allocation shares it, so one that outlives Kokkos::finalize
/// still closes its own account.
class memory_registry {
 public:
  memory_registry() = default;
  memory_registry(const memory_registry&) = delete;
  memory_registry& operator=(const memory_registry&) = delete;
  ~memory_registry() = default;
  static std::shared_ptr<memory_registry> get();

  ledger& ledger_of(std::string_view space);
  /// The accounts of all spaces by name. They live as long as the registry.
  [[nodiscard]] std::vector<ledger*> spaces();

  /// Frees idle blocks of all spaces, or of one on all devices.
  std::size_t trim(in_flight effort, std::string_view space = {});

 private:
  std::mutex guard_;
  std::map<std::string, ledger, std::less<>> ledgers_;  // by name
};

}  // namespace ferry::detail
