// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// Arithmetic as the compiler generates it. Where it fuses a multiplication and an addition, results differ
/// from those of other backends in the last bits. GCC does so for machines with such an instruction
/// (-march=native), except with -ffp-contract=off.
struct arithmetic_functions {
  template <class T>
  using number = T;

  /// A host has no such instructions.
  static bool lesser(float, float, float&) { return false; }
  static bool greater(float, float, float&) { return false; }
};

}  // namespace ferry::host
