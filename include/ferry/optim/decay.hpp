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

/// Whether a change is so small beside the weight that changes some thousand times larger would not move it either.
template <class Compute>
KOKKOS_FUNCTION bool is_lost_in(const Compute& change, const Compute& weight) {
  return weight - Compute(4096) * change == weight;
}

}  // namespace ferry::optim
