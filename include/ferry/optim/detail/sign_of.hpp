#pragma once

#include <Kokkos_Macros.hpp>

namespace ferry::optim {

/// 1, 0 or -1; 0 of a NaN. The difference of two comparisons, because a host's compiler makes branches of a choice within
/// a choice, which signs of gradients mispredict, and vectors of this.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION Compute sign_of(const Compute& x) {
  return Compute(static_cast<float>(static_cast<int>(x > Compute(0)) - static_cast<int>(x < Compute(0))));
}

}  // namespace ferry::optim
