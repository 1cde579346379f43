// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// Flaws in the types of a verb's arguments, found before they are used. Verbs are constrained to arguments
/// without a flaw. Their overloads in refusals.hpp report a flaw in one sentence.
namespace ferry::detail {

template <class T>
using traits_of = array_traits<std::remove_cvref_t<T>>;

template <class T>
concept AnArray = ArrayLike<std::remove_cvref_t<T>>;

/// Whether the elements of an array may be copied byte by byte.
template <class Array>
consteval bool holds_elements() {
  if constexpr (AnArray<Array>)
    return Element<
        std::remove_pointer_t<decltype(make_ref(std::declval<std::remove_cvref_t<Array>&>()).data)>>;
  else
    return false;
}

template <class T>
consteval bool is_index_argument() {
  if constexpr (is_plan<T>)
    return true;
  else if constexpr (AnArray<T>)
    return IndexElement<std::remove_const_t<typename traits_of<T>::value_type>>;
  else
    return false;
}

enum class flaw {
  none,
  no_execution_space,
  no_array,
  no_elements,
  no_indices,
  no_index_array,
  braced_indices
};

/// The first flaw of a list that is not none.
template <class... Flaws>
consteval flaw first_of(Flaws... flaws) {
  flaw first = flaw::none;
  ((first = first == flaw::none ? flaws : first), ...);
  return first;
}

template <class Exec>
consteval flaw flaw_of_execution_space() {
  return ExecutionSpace<Exec> ? flaw::none : flaw::no_execution_space;
}
template <class Array>
consteval flaw flaw_of_array() {
  if (!AnArray<Array>) return flaw::no_array;
  return holds_elements<Array>() ? flaw::none : flaw::no_elements;
}
/// An 8-bit table is a table too.
template <class Table>
consteval flaw flaw_of_table() {
  return is_codes<std::remove_cvref_t<Table>> ? flaw::none : flaw_of_array<Table>();
}
template <class Indices>
consteval flaw flaw_of_indices() {
  if (is_index_argument<Indices>()) return flaw::none;
  return AnArray<Indices> ? flaw::no_indices : flaw::no_index_array;
}
template <class Exec, class Table, class Indices, class Batch>
consteval flaw flaw_of_row_verb() {
  return first_of(flaw_of_execution_space<Exec>(), flaw_of_table<Table>(), flaw_of_indices<Indices>(),
                  flaw_of_array<Batch>());
}

/// The type at Position of a list, void beyond its end.
template <std::size_t Position, class... Types>
consteval auto type_at() {
  if constexpr (Position < sizeof...(Types))
    return std::type_identity<std::tuple_element_t<Position, std::tuple<Types...>>>{};
  else
    return std::type_identity<void>{};
}
template <std::size_t Position, class... Types>
using at_t = typename decltype(type_at<Position, Types...>())::type;

template <class T>
inline constexpr bool is_table_argument = AnArray<T> || is_codes<T>;

/// The flaws of whole argument lists. A missing execution space is a flaw only where the rest of the list
/// fits the verb. Verbs on sharded tables have checks of their own.
template <class... A>
consteval flaw flaw_of_gather() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 4 && !is_optimizer_argument<second>)
      return flaw_of_row_verb<first, second, at_t<2, A...>, at_t<3, A...>>();
  } else {
    if (sizeof...(A) >= 4 && (is_table_argument<second> || is_optimizer_argument<second>))
      return flaw::no_execution_space;
    if (sizeof...(A) >= 3 && is_table_argument<first> && is_index_argument<second>())
      return flaw::no_execution_space;
    if (sizeof...(A) >= 4 && is_optimizer_argument<first>) return flaw::no_execution_space;
  }
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_new_gather() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 3)
      return first_of(flaw_of_table<second>(), flaw_of_indices<at_t<2, A...>>());
  } else {
    if (sizeof...(A) >= 2 && (is_table_argument<first> || is_table_argument<second>))
      return flaw::no_execution_space;
  }
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_step() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  using third = at_t<2, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 6 && is_state<at_t<3, A...>>)
      return flaw_of_row_verb<first, third, at_t<4, A...>, at_t<5, A...>>();
    else if constexpr (sizeof...(A) >= 5 && is_records<third>)
      return first_of(flaw_of_indices<at_t<3, A...>>(), flaw_of_array<at_t<4, A...>>());
  } else {
    if (sizeof...(A) >= 4 && (is_optimizer_argument<first> || is_optimizer_argument<second>))
      return flaw::no_execution_space;
  }
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_copy() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 3) return first_of(flaw_of_array<second>(), flaw_of_array<at_t<2, A...>>());
  } else {
    if (AnArray<second> && (AnArray<first> || (sizeof...(A) >= 3 && AnArray<at_t<2, A...>>)))
      return flaw::no_execution_space;
  }
  return flaw::none;
}

/// For gather_bags(exec, table, indices, offsets, pooled, ...).
template <class... A>
consteval flaw flaw_of_gather_bags() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  if (!ExecutionSpace<at_t<0, A...>> && sizeof...(A) >= 4 &&
      ((is_table_argument<at_t<0, A...>> && is_index_argument<at_t<1, A...>>()) ||
       (is_table_argument<at_t<1, A...>> && is_index_argument<at_t<2, A...>>())))
    return flaw::no_execution_space;
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_clone() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  if (!ExecutionSpace<first> && (is_table_argument<first> || is_table_argument<at_t<1, A...>>))
    return flaw::no_execution_space;
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_make_plan() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 3) return flaw_of_indices<second>();
  } else {
    if ((is_index_argument<first>() && std::is_integral_v<second>) ||
        (sizeof...(A) >= 3 && is_index_argument<second>()))
      return flaw::no_execution_space;
  }
  return flaw::none;
}

/// For quantize and dequantize, which take an array and an 8-bit table.
template <class... A>
consteval flaw flaw_of_conversion() {
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  using third = at_t<2, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (is_codes<second> && sizeof...(A) >= 3)
      return flaw_of_array<third>();
    else if constexpr (is_codes<third>)
      return flaw_of_array<second>();
  } else {
    if (sizeof...(A) >= 2 && (is_codes<first> || is_codes<second> || is_codes<third>))
      return flaw::no_execution_space;
  }
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_catch_up() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if (!ExecutionSpace<first> && sizeof...(A) >= 2 &&
      (is_optimizer_argument<first> || is_optimizer_argument<second>))
    return flaw::no_execution_space;
  return flaw::none;
}

template <class... A>
consteval flaw flaw_of_init() {
  if constexpr ((is_sharded<A> || ...)) return flaw::none;
  using first = at_t<0, A...>;
  using second = at_t<1, A...>;
  if constexpr (ExecutionSpace<first>) {
    if constexpr (sizeof...(A) >= 2) return flaw_of_array<second>();
  } else {
    if (AnArray<first> || AnArray<second>) return flaw::no_execution_space;
  }
  return flaw::none;
}

/// The verb that refuses. A compiler prints a message once per verb and list of arguments.
enum class refusing {
  gather,
  scatter,
  scatter_add,
  step,
  copy,
  clone,
  gather_bags,
  step_bags,
  make_plan,
  quantize,
  dequantize,
  catch_up,
  zeros,
  constant,
  uniform,
  normal,
  custom,
  others
};

/// Fails with one sentence, which is the first message of the compiler.
template <flaw Found, refusing Verb, class... Arguments>
consteval void say() {
  static_assert(
      Found != flaw::no_execution_space,
      "ferry: the first argument of a verb must be an instance of a Kokkos execution space, Kokkos::DefaultExecutionSpace{} say.");
  static_assert(
      Found != flaw::no_array,
      "ferry: tables and batches must be a ferry::tensor, a tensor_view, a Kokkos::View, a std::span, a std::vector, a std::array, or a type with ferry::array_traits; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, rows, width), or ferry::tensor_view<T, Space>(pointer, rows, width) where the memory is no ordinary host memory, for a Kokkos::DualView one of its two views. <ferry/interop/mdspan.hpp>, dual_view.hpp and eigen.hpp make arrays of mdspans, DualViews and Eigen's matrices.");
  static_assert(
      Found != flaw::no_elements,
      "ferry: the elements of an array must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory; of a std::vector of std::vectors make one array of rows, ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::no_indices,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64.");
  static_assert(
      Found != flaw::no_index_array,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64: a std::vector, a std::span, a std::array, a Kokkos::View or a ferry::tensor; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, count), as for a table ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::braced_indices,
      "ferry: the indices must be an array with a name for its type: write std::array{1, 2, 3} in place of {1, 2, 3}.");
}

}  // namespace ferry::detail
