// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace ferry_info {

inline constexpr double gib = 1073741824.0;

inline std::string number(double value, int digits = 1) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
/// Negative: unknown.
inline std::string in_gib(std::int64_t bytes) {
  return bytes < 0 ? "unknown" : number(static_cast<double>(bytes) / gib) + " GiB";
}

}  // namespace ferry_info
