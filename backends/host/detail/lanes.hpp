// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vector_instructions.hpp"

#include <ferry/runtime/detail/backend.hpp>

#include <type_traits>

// Not with nvcc, which would parse the vectors for the device, too.
#if defined(__GNUC__) && defined(__SSE2__) && !defined(__CUDACC__)
#define FERRY_HOST_LANES 1
#else
#define FERRY_HOST_LANES 0
#endif

#if FERRY_HOST_LANES
namespace ferry::host {

/// Operations that compilers must be told the register for: they would fill it number by number, and call the
/// C library for roots. Without <immintrin.h>, which takes a compiler most of a second. By pointers: how
/// vectors are passed depends on the processor that the caller is compiled for.
template <class T, int Bytes>
struct in_register;
template <>
struct in_register<float, 32> {
  using vector [[gnu::vector_size(32)]] = float;
  [[gnu::target("avx")]] static void fill(void* target, float number) {
    const vector numbers = number - vector{};
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
  [[gnu::target("avx")]] static void take_roots(void* target, const void* source) {
    vector numbers;
    __builtin_memcpy(&numbers, source, sizeof numbers);
    numbers = __builtin_ia32_sqrtps256(numbers);
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
};
template <>
struct in_register<double, 32> {
  using vector [[gnu::vector_size(32)]] = double;
  [[gnu::target("avx")]] static void fill(void* target, double number) {
    const vector numbers = number - vector{};
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
  [[gnu::target("avx")]] static void take_roots(void* target, const void* source) {
    vector numbers;
    __builtin_memcpy(&numbers, source, sizeof numbers);
    numbers = __builtin_ia32_sqrtpd256(numbers);
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
};
#ifdef __AVX512F__
template <>
struct in_register<float, 64> {
  using vector [[gnu::vector_size(64)]] = float;
  static void fill(void* target, float number) {
    const vector numbers = number - vector{};
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
  static void take_roots(void* target, const void* source) {
    vector numbers;
    __builtin_memcpy(&numbers, source, sizeof numbers);
#ifdef __clang__
    numbers = __builtin_ia32_sqrtps512(numbers, 4);
#else
    numbers = __builtin_ia32_sqrtps512_mask(numbers, numbers, -1, 4);
#endif
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
};
template <>
struct in_register<double, 64> {
  using vector [[gnu::vector_size(64)]] = double;
  static void fill(void* target, double number) {
    const vector numbers = number - vector{};
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
  static void take_roots(void* target, const void* source) {
    vector numbers;
    __builtin_memcpy(&numbers, source, sizeof numbers);
#ifdef __clang__
    numbers = __builtin_ia32_sqrtpd512(numbers, 4);
#else
    numbers = __builtin_ia32_sqrtpd512_mask(numbers, numbers, -1, 4);
#endif
    __builtin_memcpy(target, &numbers, sizeof numbers);
  }
};
#endif

/// `Count` numbers that one instruction computes, at most a register of the machine that is compiled for.
/// They have the arithmetic of T, number by number, and the same bits. Square roots are instructions: those
/// of the C library set errno, so a compiler that is not told otherwise calls them one by one.
template <class T, int Count>
class lanes {
  using vector [[gnu::vector_size(Count * sizeof(T))]] = T;
  static constexpr bool is_large = Count * sizeof(T) > 16;

 public:
  static constexpr int count = Count;

  /// Answers of a comparison, one for each number: no branch takes them, but either().
  struct mask {
    decltype(vector{} < vector{}) numbers;
    [[gnu::always_inline]] mask(const decltype(vector{} < vector{}) & answers) : numbers(answers) {}
    [[gnu::always_inline]] mask(const mask& source) : numbers(source.numbers) {}
    mask& operator=(const mask&) = delete;
  };

  /// Copies are functions of the class, so calls pass lanes by address, whatever their callers and callees
  /// are compiled for.
  /// @{
  lanes() = default;
  [[gnu::always_inline]] lanes(const lanes& source) : numbers_(source.numbers_) {}
  [[gnu::always_inline]] lanes& operator=(const lanes& source) {
    numbers_ = source.numbers_;
    return *this;
  }
  /// @}
  [[gnu::always_inline]] lanes(T number) {  // NOLINT: coefficients are numbers
    if constexpr (is_large)
      in_register<T, Count* static_cast<int>(sizeof(T))>::fill(&numbers_, number);
    else
      numbers_ = number - vector{};
  }

  [[gnu::always_inline]] static lanes load(const T* source) {
    lanes result;
    __builtin_memcpy(&result.numbers_, source, sizeof result.numbers_);
    return result;
  }
  [[gnu::always_inline]] void store(T* target) const { __builtin_memcpy(target, &numbers_, sizeof numbers_); }

  [[gnu::always_inline]] friend lanes operator+(const lanes& a, const lanes& b) {
    return of_numbers(a.numbers_ + b.numbers_);
  }
  [[gnu::always_inline]] friend lanes operator-(const lanes& a, const lanes& b) {
    return of_numbers(a.numbers_ - b.numbers_);
  }
  [[gnu::always_inline]] friend lanes operator*(const lanes& a, const lanes& b) {
    return of_numbers(a.numbers_ * b.numbers_);
  }
  [[gnu::always_inline]] friend lanes operator/(const lanes& a, const lanes& b) {
    return of_numbers(a.numbers_ / b.numbers_);
  }
  [[gnu::always_inline]] friend lanes operator-(const lanes& a) { return of_numbers(-a.numbers_); }
  [[gnu::always_inline]] lanes& operator+=(const lanes& b) { return *this = *this + b; }
  [[gnu::always_inline]] lanes& operator-=(const lanes& b) { return *this = *this - b; }
  [[gnu::always_inline]] lanes& operator*=(const lanes& b) { return *this = *this * b; }
  [[gnu::always_inline]] lanes& operator/=(const lanes& b) { return *this = *this / b; }

  [[gnu::always_inline]] friend mask operator<(const lanes& a, const lanes& b) {
    return {a.numbers_ < b.numbers_};
  }
  [[gnu::always_inline]] friend mask operator>(const lanes& a, const lanes& b) {
    return {a.numbers_ > b.numbers_};
  }
  [[gnu::always_inline]] friend mask operator!=(const lanes& a, const lanes& b) {
    return {a.numbers_ != b.numbers_};
  }
  [[gnu::always_inline]] friend mask operator||(const mask& a, const mask& b) {
    return {a.numbers | b.numbers};
  }
  /// a if the condition holds, else b.
  [[gnu::always_inline]] friend lanes either(const mask& condition, const lanes& a, const lanes& b) {
    return of_numbers(condition.numbers ? a.numbers_ : b.numbers_);
  }

  /// 1, 0 or -1; 0 for a NaN.
  [[nodiscard, gnu::always_inline]] lanes sign() const {
    return either(*this > lanes(T(0)), lanes(T(1)), lanes(T(0))) -
           either(*this < lanes(T(0)), lanes(T(1)), lanes(T(0)));
  }
  [[nodiscard, gnu::always_inline]] lanes magnitude() const {
    lanes result;
    for (int e = 0; e < Count; ++e)
      if constexpr (std::is_same_v<T, float>)
        result.numbers_[e] = __builtin_fabsf(numbers_[e]);
      else
        result.numbers_[e] = __builtin_fabs(numbers_[e]);
    return result;
  }
  [[nodiscard, gnu::always_inline]] lanes square_root() const {
    lanes result;
    if constexpr (is_large)
      in_register<T, Count* static_cast<int>(sizeof(T))>::take_roots(&result.numbers_, &numbers_);
    else if constexpr (Count == 1)
      result.numbers_[0] = square_roots(numbers_[0]);
    else
      result.numbers_ = square_roots(numbers_);
    return result;
  }

 private:
  [[gnu::always_inline]] static lanes of_numbers(const vector& numbers) {
    lanes result;
    result.numbers_ = numbers;
    return result;
  }

  vector numbers_;
};

/// Bytes of a register.
#if defined(__AVX512F__)
inline constexpr int lane_bytes = 64;
#elif defined(__AVX__)
inline constexpr int lane_bytes = 32;
#else
inline constexpr int lane_bytes = 16;
#endif

}  // namespace ferry::host

template <>
struct ferry::detail::lanes_of<float> {
  static constexpr int most = ferry::host::lane_bytes / static_cast<int>(sizeof(float));
  template <int Count>
  using type = ferry::host::lanes<float, Count>;
};
template <>
struct ferry::detail::lanes_of<double> {
  static constexpr int most = ferry::host::lane_bytes / static_cast<int>(sizeof(double));
  template <int Count>
  using type = ferry::host::lanes<double, Count>;
};
#endif
