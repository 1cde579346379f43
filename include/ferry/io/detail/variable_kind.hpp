// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/io/detail/array_arguments.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// An engine of <random>, adaptors included, or a distribution, which may hold a number for its next call.
template <class T>
concept RandomState = requires(T& object, const T& constant, std::ostream& output, std::istream& input) {
  typename T::result_type;
  output << constant;
  input >> object;
}
&&(
    requires(T& engine) {
      engine();
      engine.discard(1ULL);
    } ||
    requires(T & distribution) {
      typename T::param_type;
      distribution.reset();
    });

/// How a variable is kept that is no array.
enum class variable_kind : std::uint8_t { none, number, text, texts, random, record };

/// True for arrays whose elements are their values: a copy of their bytes is one in another process, too.
template <class T>
consteval bool is_array_of_values() {
  if constexpr (ArrayLike<T>)
    return FileElement<file_element<T>>;
  else
    return false;
}

template <class T>
consteval variable_kind kind_of_variable() {
  using plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<plain, std::vector<std::string>>) {
    return variable_kind::texts;
  } else if constexpr (std::is_volatile_v<T> || ArrayLike<plain> || std::is_reference_v<T>) {
    return variable_kind::none;
  } else if constexpr (std::is_enum_v<plain> || std::is_arithmetic_v<plain>) {
    return variable_kind::number;
  } else if constexpr (std::is_same_v<plain, std::string>) {
    return variable_kind::text;
  } else if constexpr (!(std::is_class_v<plain> || std::is_union_v<plain>)) {
    return variable_kind::none;
  } else if constexpr (dtype_name<plain>() != "struct") {
    return variable_kind::number;
  } else if constexpr (RandomState<plain>) {
    return variable_kind::random;
  } else if constexpr (std::is_trivially_copyable_v<plain> && !std::is_empty_v<plain> &&
                       !refers_elsewhere<plain> && !Optimizer<plain> && !Transform<plain>) {
    return variable_kind::record;
  } else {
    return variable_kind::none;
  }
}

template <class T>
inline constexpr bool is_kept_variable = kind_of_variable<T>() != variable_kind::none;

template <class T, bool = std::is_enum_v<T>>
struct number_of_kind {
  using type = std::remove_const_t<T>;
};
template <class T>
struct number_of_kind<T, true> {
  using type = std::underlying_type_t<T>;
};
/// The number that a variable of variable_kind::number is saved as.
template <class T>
using number_of_variable = typename number_of_kind<T>::type;

}  // namespace ferry::detail
