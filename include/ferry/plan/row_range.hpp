// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>

#include <cstdint>

namespace ferry {

/// Neighbouring rows [first, first + count), where copy_rows takes a list of rows.
struct row_range {
  std::int64_t first = 0;  ///< the first row
  std::int64_t count = 0;  ///< how many rows
};

template <>
inline constexpr bool detail::is_plan_object<row_range> = true;

}  // namespace ferry
