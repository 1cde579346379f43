// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace ferry::cuda {

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
    KOKKOS_IF_ON_DEVICE((if constexpr (is_float) return __fadd_rn(a, b); else return __dadd_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a + b;))
  }
  KOKKOS_FUNCTION static T product(T a, T b) {
    KOKKOS_IF_ON_DEVICE((if constexpr (is_float) return __fmul_rn(a, b); else return __dmul_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a * b;))
  }
  KOKKOS_FUNCTION static T quotient(T a, T b) {
    KOKKOS_IF_ON_DEVICE((if constexpr (is_float) return __fdiv_rn(a, b); else return __ddiv_rn(a, b);))
    KOKKOS_IF_ON_HOST((return a / b;))
  }

  T value_;
};

struct arithmetic_functions {
  template <class T>
  using number = rounded<T>;

  /// result = the lesser or the greater of two numbers, NaN if one of them is. They return false if the
  /// device that is compiled for has no such instruction.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static bool lesser([[maybe_unused]] float a, [[maybe_unused]] float b,
                                                 [[maybe_unused]] float& result) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return true;
#else
    return false;
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool greater([[maybe_unused]] float a, [[maybe_unused]] float b,
                                                  [[maybe_unused]] float& result) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return true;
#else
    return false;
#endif
  }
  /// @}
};

}  // namespace ferry::cuda
