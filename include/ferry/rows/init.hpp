#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/finite.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Fills by `generator`, on `exec` where it reaches the memory, else on the host; blocks until done.
template <class Exec, class T, class Space, class Generator>
void generate(const Exec& exec, const std::string& label, const array_ref<T, Space>& array,
              const Generator& generator) {
  require_dense_rows("init", array);
  if (array.size() == 0) return;
  if (array.accesses != nullptr) array.accesses->wait_for_all();
  const kernels::fill_elements<T, Generator> kernel{array.data, array.row_stride(),
                                                    fast_divisor(array.width()), generator};
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    const typename execution_backend<Exec>::device_guard on(exec);  // Kokkos leaves its own device current
    launch(exec, label, array.size(), kernel);
    execution_backend<Exec>::fence(exec, label);
  } else {
    execution_backend<Exec>::fence(exec, label);
    const auto host = host_side(exec);
    launch(host, label, array.size(), kernel);
    host.fence(label);
  }
}

template <class Exec, class T, class Space>
void fill(const Exec& exec, const array_ref<T, Space>& array, T value) {
  generate(exec, "ferry::init::fill", array, kernels::constant_value<T>{value});
}

template <class Exec, class Array>
consteval void require_init() {
  require_execution_space<Exec>();
  require_rows<Array>();
  require_mutable<Array>();
  require_reach<Exec, Array>();
}

template <class Array>
using element_of = std::remove_cvref_t<decltype(*make_ref(std::declval<Array&>()).data)>;

/// Whether a uniform draw of integers from [low, high) makes sense, see init::uniform.
template <class T>
void require_integers(double low, double high) {
  constexpr auto least = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto beyond = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  const bool some = low == high ? std::ceil(low) == low && low < beyond : std::ceil(low) < high;
  if (!some || low < least || high > beyond || high - low > 0x1p53)
    throw invalid_argument("ferry::init::uniform: [" + std::to_string(low) + ", " + std::to_string(high) +
                           ") is no interval of integers that the element type holds");
}

/// Whether the integers of type T have the value, its fraction left out.
template <class T, class Value>
bool is_held_by(const Value& value) {
  using plain = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<T>, std::make_unsigned_t<T>>;
  if constexpr (std::is_integral_v<Value>) {
    return std::in_range<plain>(static_cast<accumulation_t<Value>>(value));
  } else {
    constexpr auto beyond = static_cast<double>(std::numeric_limits<plain>::max() / 2 + 1) * 2.0;
    const double whole = std::trunc(convert<double>(value));
    return whole >= static_cast<double>(std::numeric_limits<plain>::min()) && whole < beyond;
  }
}
template <class Value>
using printed_t = std::conditional_t<std::is_integral_v<Value>, accumulation_t<Value>, double>;

template <class Array>
consteval void require_numbers() {
  static_assert(NumberElement<element_of<Array>>,
                "ferry: this initialisation needs elements that are numbers.");
}

}  // namespace detail

/// Initial values. Each of these blocks until the array is filled, whatever its memory space. Random values
/// are a pure function of seed and row-major position: the same bits for every number of threads, on every
/// backend, in every memory space. Computed in double and rounded once to the element type.
namespace init {

template <class Exec, class Array>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<Array>()) ==
           detail::flaw::none)
void zeros(const Exec& exec, Array&& array) {
  ferry::detail::require_init<Exec, Array>();
  using element = ferry::detail::element_of<Array>;
  ferry::detail::fill(exec, make_ref(array), element{});
}

/// Every element = `value`, which is one of the array's elements, or a number where they are numbers: floating-point
/// elements take the nearest, integers what is left of it without its fraction. Throws invalid_argument where integer
/// elements can't hold it.
template <class Exec, class Array, class Value>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<Array>()) ==
           detail::flaw::none)
void constant(const Exec& exec, Array&& array, const Value& value) {
  ferry::detail::require_init<Exec, Array>();
  using element = ferry::detail::element_of<Array>;
  static_assert(ConvertibleElement<element, Value>,
                "ferry: init::constant needs a value of the array's element type, or numbers on both sides.");
  if constexpr (std::is_integral_v<element> && !std::is_same_v<element, Value>)
    if (!ferry::detail::is_held_by<element>(value))
      throw invalid_argument("ferry::init::constant: " + make_ref(array).describe() + " can't hold " +
                             std::to_string(convert<ferry::detail::printed_t<Value>>(value)));
  ferry::detail::fill(exec, make_ref(array), convert<element>(value));
}

/// Uniform in [low, high); for integers, each integer in it is as likely. Throws invalid_argument unless
/// low <= high and the interval's length is finite, and for integers where the interval holds none, passes
/// the type's range, or has more than 2^53 of them. low == high gives that value.
template <class Exec, class Array>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<Array>()) ==
           detail::flaw::none)
void uniform(const Exec& exec, Array&& array, double low, double high, std::uint64_t seed) {
  ferry::detail::require_init<Exec, Array>();
  ferry::detail::require_numbers<Array>();
  if (ferry::detail::is_nan(low) || ferry::detail::is_nan(high) || !(low <= high) ||
      !ferry::detail::is_finite(high - low))
    throw invalid_argument("ferry::init::uniform: [" + std::to_string(low) + ", " + std::to_string(high) +
                           ") is no interval");
  using element = ferry::detail::element_of<Array>;
  if constexpr (std::is_integral_v<element>) {
    detail::require_integers<element>(low, high);
    low = std::ceil(low);
    high = std::max(std::ceil(high), low + 1.0);
  }
  ferry::detail::generate(exec, "ferry::init::uniform", make_ref(array),
                          kernels::uniform_value<element>{low, high, seed});
}

/// Normal with the given mean and standard deviation; integers are rounded to nearest and held in the type's
/// range. Throws invalid_argument for a negative deviation.
template <class Exec, class Array>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<Array>()) ==
           detail::flaw::none)
void normal(const Exec& exec, Array&& array, double mean, double deviation, std::uint64_t seed) {
  ferry::detail::require_init<Exec, Array>();
  ferry::detail::require_numbers<Array>();
  if (ferry::detail::is_nan(deviation) || !(deviation >= 0.0))
    throw invalid_argument("ferry::init::normal: the standard deviation is " + std::to_string(deviation) +
                           ", must be >= 0");
  using element = ferry::detail::element_of<Array>;
  ferry::detail::generate(exec, "ferry::init::normal", make_ref(array),
                          kernels::normal_value<element>{mean, deviation, seed});
}

/// array(row, column) = function(row, column); the function must be callable where the array is filled: on
/// the device for device, pinned and mapped space, on the host for pageable space.
template <class Exec, class Array, class Function>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<Array>()) ==
           detail::flaw::none)
void custom(const Exec& exec, Array&& array, const Function& function) {
  ferry::detail::require_init<Exec, Array>();
  using element = ferry::detail::element_of<Array>;
  static_assert(std::is_invocable_v<const Function&, std::int64_t, std::int64_t>,
                "ferry: init::custom needs a function of (row, column).");
  ferry::detail::generate(exec, "ferry::init::custom", make_ref(array),
                          kernels::custom_value<element, Function>{function});
}

}  // namespace init
}  // namespace ferry
