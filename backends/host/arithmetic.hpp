#pragma once

namespace ferry::host {

/// Numbers as the compiler computes with them. Where it fuses a multiplication and an addition, as GCC does for machines
/// with such an instruction (-march=native) unless it is told -ffp-contract=off, results differ from other backends' in
/// the last bits.
struct arithmetic_functions {
  template <class T>
  using number = T;
};

}  // namespace ferry::host
