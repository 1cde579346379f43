#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::optim {

/// base^steps by repeated squaring in double: multiplications alone, so the same on every backend.
template <class Compute>
KOKKOS_FUNCTION Compute decay_over(const Compute& base, std::int64_t steps) {
  double square = static_cast<double>(base);
  double product = 1.0;
  for (; steps > 0; steps /= 2) {
    if (steps % 2 != 0) product *= square;
    square *= square;
  }
  return static_cast<Compute>(product);
}

/// gradient + weight_decay weight. Without a decay the term is left out, as torch.optim does: 0 times an infinite weight
/// is not 0.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION Compute decayed(const Compute& gradient, const Compute& weight_decay,
                                            const Compute& weight) {
  const Compute sum = gradient + weight_decay * weight;
  return weight_decay == Compute(0) ? gradient : sum;
}

/// Whether a change is so small next to the weight that changes 4096 times larger would not move it either: they
/// are less than half of the weight's last place. Not as weight - 4096 change == weight, of which a compiler that may
/// reorder arithmetic makes change == 0.
template <class Compute>
KOKKOS_FUNCTION bool is_lost_in(const Compute& change, const Compute& weight) {
  static_assert(sizeof(Compute) == 4 || sizeof(Compute) == 8);
  constexpr double half_of_last_place = sizeof(Compute) == 4 ? 0x1p-25 : 0x1p-54;
  const Compute most = Compute(half_of_last_place) * weight;
  const Compute large = Compute(4096) * change;
  return (large < Compute(0) ? -large : large) <= (most < Compute(0) ? -most : most);
}

}  // namespace ferry::optim
