// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace ferry::detail {

/// Memory of one process that ranks share.
struct shared_bytes {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
};

/// Memory that all ranks of the call share, in the accounts of pinned_space or pageable_space.
shared_bytes share_memory(collective& call, const communicator& comm, const std::string& label,
                          std::size_t bytes, bool pinned);

}  // namespace ferry::detail
