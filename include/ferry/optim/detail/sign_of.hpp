// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

namespace ferry::optim {

/// 1, 0 or -1; 0 for a NaN. Written as the difference of two comparisons, which a host's compiler vectorises.
/// Nested conditionals become branches, which the signs of gradients mispredict.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION Compute sign_of(const Compute& x) {
  if constexpr (requires { x.sign(); })
    return x.sign();  // several numbers, see detail::lanes_of
  else
    return Compute(static_cast<float>(static_cast<int>(x > Compute(0)) - static_cast<int>(x < Compute(0))));
}

}  // namespace ferry::optim
