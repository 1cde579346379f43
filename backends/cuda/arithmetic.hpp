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

  /// See ferry::optim::middle_quotient. The first two are nvcc's sequences for division and root without the
  /// tests that precede them, hence have the same bits.
  /// @{
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rounded middle_quotient([[maybe_unused]] rounded b) const
      requires(is_float) {
    KOKKOS_IF_ON_DEVICE((const float rough = rough_inverse(b.value_);
                         const float inverse = __fmaf_rn(rough, __fmaf_rn(-b.value_, rough, 1.0f), rough);
                         const float quotient = __fmul_rn(value_, inverse);
                         return __fmaf_rn(inverse, __fmaf_rn(-b.value_, quotient, value_), quotient);))
    KOKKOS_IF_ON_HOST((return value_ / b.value_;))
  }
  /// Its end alone. The bits are those of the quotient for each of the 2^46 pairs of mantissas, tried on a
  /// device.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rounded middle_quotient([[maybe_unused]] rounded b,
                                                                    [[maybe_unused]] rounded inverse) const
      requires(is_float) {
    KOKKOS_IF_ON_DEVICE((const float quotient = __fmul_rn(value_, inverse.value_);
                         return __fmaf_rn(inverse.value_, __fmaf_rn(-b.value_, quotient, value_), quotient);))
    KOKKOS_IF_ON_HOST((return value_ / b.value_;))
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rounded middle_root() const requires(is_float) {
    KOKKOS_IF_ON_DEVICE((const float inverse = rough_inverse_root(value_);
                         const float root = __fmul_rn(value_, inverse);
                         return __fmaf_rn(__fmaf_rn(-root, root, value_), __fmul_rn(inverse, 0.5f), root);))
    KOKKOS_IF_ON_HOST((return Kokkos::sqrt(value_);))
  }
  /// @}

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

  /// The device's instructions, without branches.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static float rough_inverse(float x) {
    float inverse = x;
    KOKKOS_IF_ON_DEVICE((asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));))
    return inverse;
  }
  KOKKOS_FORCEINLINE_FUNCTION static float rough_inverse_root(float x) {
    float inverse = x;
    KOKKOS_IF_ON_DEVICE((asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));))
    return inverse;
  }
  /// @}

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
