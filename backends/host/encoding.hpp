// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::host {

/// A host has no such instructions.
struct encoding_functions {
  template <bool Five>
  static bool encode_byte(float, std::uint8_t&) {
    return false;
  }
  template <bool Five>
  static bool encode_four_bytes(const float (&)[4], std::uint32_t&) {
    return false;
  }
  template <bool Five>
  static bool decode_byte(std::uint32_t, float&) {
    return false;
  }
  template <bool Five>
  static bool decode_four_bytes(std::uint32_t, float (&)[4]) {
    return false;
  }
  static bool decode_eight_nibbles(std::uint32_t, float (&)[8]) { return false; }
  static bool widen_four_bytes(std::uint32_t, float (&)[4]) { return false; }
  static bool widen_two(std::uint32_t, float&, float&) { return false; }
  template <bool Brain>
  static bool narrow_two(float, float, std::uint32_t&) {
    return false;
  }
};

}  // namespace ferry::host
