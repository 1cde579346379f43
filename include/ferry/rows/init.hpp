// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Fills an array by `generator`, on `exec` if it reaches the memory, else on the host. Blocks until it is
/// done.
template <class Exec, class T, class Space, class Generator>
void generate(const Exec& exec, const std::string& label, const array_ref<T, Space>& array,
              const Generator& generator) {
  require_own_kokkos(exec, "init");
  require_dense_rows("init", array);
  require_array_device("init", exec, array);
  if (array.size() == 0) return;
  if (array.accesses != nullptr) array.accesses->wait_for_all();
  const fill_target<T> target{array.data, array.rows(), array.width(), array.row_stride()};
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    const typename execution_backend<Exec>::device_guard guard(exec);  // Kokkos leaves its own device current
    launch_fill(exec, label, target, generator);
    execution_backend<Exec>::fence(exec, label);
  } else {
    execution_backend<Exec>::fence(exec, label);
    const auto host = host_side(exec);
    launch_fill(host, label, target, generator);
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
  require_output<Array>();
  require_reach<Exec, Array>();
}

template <class Array>
using element_of = std::remove_cvref_t<decltype(*make_ref(std::declval<Array&>()).data)>;

/// Refuses the options of an initialisation.
[[noreturn, gnu::cold]] inline void refuse_init(const char* verb, const array_note& array,
                                                const std::string& why) {
  throw invalid_argument(joined("ferry::init::", verb, " of ", array.describe(), ": ", why));
}

/// Throws if T can't hold uniform integers of [low, high), see init::uniform.
template <class T>
void require_integers(double low, double high, const array_note& array) {
  constexpr auto least = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto limit = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  const bool has_integer = low == high ? std::ceil(low) == low && low < limit : std::ceil(low) < high;
  if (!has_integer || low < least || high > limit || high - low > 0x1p53)
    refuse_init("uniform", array,
                joined("[", low, ", ", high, ") is no interval of integers that the element type holds"));
}

/// True if the integer type T holds `value` without its fraction.
template <class T, class Value>
bool is_held_by(const Value& value) {
  using plain = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<T>, std::make_unsigned_t<T>>;
  if constexpr (std::is_integral_v<Value>) {
    return std::in_range<plain>(static_cast<accumulation_t<Value>>(value));
  } else {
    constexpr auto limit = static_cast<double>(std::numeric_limits<plain>::max() / 2 + 1) * 2.0;
    const double whole = std::trunc(convert<double>(value));
    return whole >= static_cast<double>(std::numeric_limits<plain>::min()) && whole < limit;
  }
}
template <class Value>
using printed_t = std::conditional_t<std::is_integral_v<Value>, accumulation_t<Value>, double>;

template <class Array>
consteval void require_numbers() {
  static_assert(ValueElement<element_of<Array>>,
                "ferry: this initialisation needs elements that are numbers.");
}

}  // namespace detail

/// Initial values for an array of rows in any memory space. Each function waits for the verbs in flight on
/// a tensor and blocks until the array is filled. Random values are a pure function of the seed and the
/// row-major position: the same bits on every backend, in every memory space and for every number of threads.
/// Those of float, half_t and bhalf_t are computed in float from 32 random bits, all others in double, and
/// rounded once to the element type. Throws invalid_argument for an array whose rows are not dense.
namespace init {

/// Every element = 0, or T{} for elements that are not numbers.
template <class Exec, class Array>
  requires(detail::AnArray<Array>&& detail::Fits<detail::zeros_arguments, const Exec&, Array>)
void zeros(const Exec& exec, Array&& array) {
  ferry::detail::require_init<Exec, Array>();
  using element = ferry::detail::element_of<Array>;
  ferry::detail::fill(exec, make_ref(array), element{});
}

/// Every element = `value`, which has the element type or, for elements that are numbers, is a number.
/// Floating-point elements take the nearest number, integers drop the fraction. Throws invalid_argument if
/// integer elements can't hold the value.
template <class Exec, class Array, class Value>
  requires(
      detail::AnArray<Array>&& detail::Fits<detail::constant_arguments, const Exec&, Array, const Value&>)
void constant(const Exec& exec, Array&& array, const Value& value) {
  ferry::detail::require_init<Exec, Array>();
  using element = ferry::detail::element_of<Array>;
  static_assert(ConvertibleElement<element, Value>,
                "ferry: init::constant needs a value of the array's element type, or numbers on both sides.");
  if constexpr (std::is_integral_v<element> && !std::is_same_v<element, Value>)
    if (!ferry::detail::is_held_by<element>(value))
      throw invalid_argument(ferry::detail::joined("ferry::init::constant: ", make_ref(array).describe(),
                                                   " can't hold ",
                                                   convert<ferry::detail::printed_t<Value>>(value)));
  ferry::detail::fill(exec, make_ref(array), convert<element>(value));
}

/// Uniform numbers of [low, high); integer elements take each integer of it with equal probability. Floats
/// are among 2^24 equally distant numbers. low == high gives that value. Throws invalid_argument unless low
/// <= high and the length is finite; for integer elements also if the interval holds no integer, exceeds
/// the range of the type, or holds more than 2^53 integers.
template <class Exec, class Array>
  requires(detail::AnArray<Array>&&
               detail::Fits<detail::uniform_arguments, const Exec&, Array, double, double, std::uint64_t>)
void uniform(const Exec& exec, Array&& array, double low, double high, std::uint64_t seed) {
  ferry::detail::require_init<Exec, Array>();
  ferry::detail::require_numbers<Array>();
  if (ferry::detail::is_nan(low) || ferry::detail::is_nan(high) || !(low <= high) ||
      !ferry::detail::is_finite(high - low))
    ferry::detail::refuse_init("uniform", make_ref(array).note(),
                               ferry::detail::joined("[", low, ", ", high, ") is no interval"));
  using element = ferry::detail::element_of<Array>;
  if constexpr (std::is_integral_v<element>)
    detail::require_integers<element>(low, high, make_ref(array).note());
  ferry::detail::generate(exec, "ferry::init::uniform", make_ref(array),
                          ferry::detail::uniform_generator<element>(low, high, seed));
}

/// Normal numbers with the given mean and standard deviation; integer elements round to nearest and clamp to
/// the range of the type. Floats lie within 6.23 deviations, doubles within 8.3. Throws invalid_argument for
/// a negative deviation.
template <class Exec, class Array>
  requires(detail::AnArray<Array>&&
               detail::Fits<detail::normal_arguments, const Exec&, Array, double, double, std::uint64_t>)
void normal(const Exec& exec, Array&& array, double mean, double deviation, std::uint64_t seed) {
  ferry::detail::require_init<Exec, Array>();
  ferry::detail::require_numbers<Array>();
  if (ferry::detail::is_nan(deviation) || !(deviation >= 0.0))
    ferry::detail::refuse_init(
        "normal", make_ref(array).note(),
        ferry::detail::joined("the standard deviation is ", deviation, ", must be >= 0"));
  using element = ferry::detail::element_of<Array>;
  ferry::detail::generate(exec, "ferry::init::normal", make_ref(array),
                          ferry::detail::normal_generator<element>(mean, deviation, seed));
}

/// array(row, column) = function(row, column), for std::int64_t row and column. Kernels of `exec` call the
/// function if they reach the array's memory space; for pageable_space and a device instance the host
/// calls it.
template <class Exec, class Array, class Function>
  requires(
      detail::AnArray<Array>&& detail::Fits<detail::custom_arguments, const Exec&, Array, const Function&>)
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
