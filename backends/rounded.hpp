// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace ferry::kernels {

/// True if the compiler has operations that it does not fuse. Others are told so: ferry's targets pass
/// -ffp-contract=off to Clang.
template <class T>
inline constexpr bool has_intrinsics = requires(T a) {
  __fadd_rn(a, a);
};

/// A float or double whose operations round one by one. nvcc would fuse multiplications and additions. Hosts
/// without such an instruction can't, so the last bits of a rule's results would differ.
template <class T>
class rounded {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  static constexpr bool is_float = std::is_same_v<T, float>;

 public:
  using plain_number = T;

  rounded() = default;
  KOKKOS_FUNCTION constexpr rounded(T value) : value_(value) {}
  template <class U>
    requires(std::is_arithmetic_v<U> && !std::is_same_v<U, T>)
  KOKKOS_FUNCTION constexpr explicit rounded(U value) : value_(static_cast<T>(value)) {}
  KOKKOS_FUNCTION constexpr operator T() const { return value_; }

  KOKKOS_FUNCTION friend rounded operator+(rounded a, rounded b) { return sum(a.value_, b.value_); }
  KOKKOS_FUNCTION friend rounded operator+(rounded a, T b) { return sum(a.value_, b); }
  KOKKOS_FUNCTION friend rounded operator+(T a, rounded b) { return sum(a, b.value_); }
  KOKKOS_FUNCTION friend rounded operator-(rounded a, rounded b) { return sum(a.value_, -b.value_); }
  KOKKOS_FUNCTION friend rounded operator-(rounded a, T b) { return sum(a.value_, -b); }
  KOKKOS_FUNCTION friend rounded operator-(T a, rounded b) { return sum(a, -b.value_); }
  KOKKOS_FUNCTION friend rounded operator*(rounded a, rounded b) { return product(a.value_, b.value_); }
  KOKKOS_FUNCTION friend rounded operator*(rounded a, T b) { return product(a.value_, b); }
  KOKKOS_FUNCTION friend rounded operator*(T a, rounded b) { return product(a, b.value_); }
  KOKKOS_FUNCTION friend rounded operator/(rounded a, rounded b) { return quotient(a.value_, b.value_); }
  KOKKOS_FUNCTION friend rounded operator/(rounded a, T b) { return quotient(a.value_, b); }
  KOKKOS_FUNCTION friend rounded operator/(T a, rounded b) { return quotient(a, b.value_); }
  KOKKOS_FUNCTION friend rounded operator-(rounded a) { return -a.value_; }

  KOKKOS_FUNCTION rounded& operator+=(rounded b) { return *this = *this + b; }
  KOKKOS_FUNCTION rounded& operator-=(rounded b) { return *this = *this - b; }
  KOKKOS_FUNCTION rounded& operator*=(rounded b) { return *this = *this * b; }
  KOKKOS_FUNCTION rounded& operator/=(rounded b) { return *this = *this / b; }

 private:
  KOKKOS_FUNCTION static T sum(T a, T b) {
    KOKKOS_IF_ON_DEVICE((if constexpr (!has_intrinsics<T>) return a + b;
                         else if constexpr (is_float) return __fadd_rn(a, b); else return __dadd_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a + b;))
  }
  KOKKOS_FUNCTION static T product(T a, T b) {
    KOKKOS_IF_ON_DEVICE((if constexpr (!has_intrinsics<T>) return a * b;
                         else if constexpr (is_float) return __fmul_rn(a, b); else return __dmul_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a * b;))
  }
  KOKKOS_FUNCTION static T quotient(T a, T b) {
    KOKKOS_IF_ON_DEVICE((if constexpr (!has_intrinsics<T>) return a / b;
                         else if constexpr (is_float) return __fdiv_rn(a, b); else return __ddiv_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a / b;))
  }

  T value_;
};

}  // namespace ferry::kernels
