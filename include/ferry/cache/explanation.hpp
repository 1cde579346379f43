// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/explanation.hpp>

#include <cstdint>

namespace ferry::cache {

/// The answer of ferry::explain for a verb on a cached_table. Its one candidate is path::direct.
struct explanation : ferry::explanation {
  double hit_rate = 0;          ///< expected share of the positions whose row is in device memory
  std::int64_t link_bytes = 0;  ///< expected bytes of rows over the link, in both directions together
};

}  // namespace ferry::cache
