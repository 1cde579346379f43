// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::host {

/// A host has no instructions for numbers of 8 bits.
struct encoding_functions {
  template <bool Five>
  static bool encode_byte(float, std::uint8_t&) {
    return false;
  }
};

}  // namespace ferry::host
