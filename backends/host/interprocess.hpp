// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// Memory of a process is its own; what ranks share is allocated for that, see ferry::shared_tensor.
struct interprocess_functions {
  static constexpr bool shares_memory = false;
};

}  // namespace ferry::host
