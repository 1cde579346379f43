// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {
/// Elements of a range of tables. <ranges> would take a compiler a tenth of a second in every source.
template <class Range>
using element_of_range = std::iter_value_t<decltype(std::ranges::begin(std::declval<Range&>()))>;
/// True for a kind of table that has a for_each_table of its own.
template <class Table>
inline constexpr bool has_own_list = false;
/// True for a range of such tables, or of arrays.
/// @{
template <class Range>
inline constexpr bool is_range_of_own_lists = false;
template <class Range>
  requires requires { typename element_of_range<Range>; }
inline constexpr bool is_range_of_own_lists<Range> = has_own_list<element_of_range<Range>>;
template <class Range>
inline constexpr bool is_range_of_tables = is_range_of_own_lists<Range>;
template <class Range>
  requires requires { requires AnArray<element_of_range<Range>>; }
inline constexpr bool is_range_of_tables<Range> = true;
/// @}
/// True for a table. A vector of views, which are trivially copyable as elements are, is a range of tables.
template <class Table>
inline constexpr bool is_one_table = holds_elements<Table>() && !is_range_of_tables<Table>;
}  // namespace detail

/// Tables of one element type and one memory space, of any numbers and widths of rows; made by
/// for_each_table. The tables must outlive it and the work on it.
template <class T, class Space>
struct table_list {
  using value_type = T;                             ///< const elements if any table has those
  using memory_space = Space;                       ///< of all tables
  std::vector<detail::array_ref<T, Space>> tables;  ///< in the order in which they were given
};

template <class T, class Space>
inline constexpr bool detail::is_table_list<table_list<T, Space>> = true;

namespace detail {
/// The tables as const arrays, unless all of them may be written.
template <class... T, class... Space>
auto list_tables(const array_ref<T, Space>&... tables) {
  using first = std::tuple_element_t<0, std::tuple<array_ref<T, Space>...>>;
  using element = std::remove_const_t<typename first::value_type>;
  using space = typename first::memory_space;
  static_assert(
      (std::is_same_v<element, std::remove_const_t<T>> && ...) && (std::is_same_v<space, Space> && ...),
      "ferry: for_each_table takes tables of one element type in one memory space.");
  if constexpr ((std::is_const_v<T> || ...))
    return table_list<const element, space>{{read_only(tables)...}};
  else
    return table_list<element, space>{{tables...}};
}
}  // namespace detail

/// The tables as one argument of gather_bags and copy_rows, in one launch, and of step_bags, for which none
/// of them may be const. Does not compile for a temporary tensor, vector or array.
template <class First, class... More>
  requires(detail::is_one_table<First> && (detail::is_one_table<More> && ...))
[[nodiscard]] auto for_each_table(First&& first, More&&... more) {
  detail::require_lasting<First>();
  (detail::require_lasting<More>(), ...);
  return detail::list_tables(make_ref(first), make_ref(more)...);
}

/// As above, of the tables of a range, for example a std::vector of tensors.
template <class Tables>
  requires(!detail::is_one_table<Tables> &&
           detail::AnArray<detail::element_of_range<std::remove_reference_t<Tables>>>)
[[nodiscard]] auto for_each_table(Tables&& range) {
  if constexpr (!std::is_lvalue_reference_v<Tables> &&
                !std::ranges::enable_borrowed_range<std::remove_cv_t<Tables>>)
    detail::require_lasting<detail::element_of_range<Tables>>();
  using reference = decltype(make_ref(*std::ranges::begin(range)));
  table_list<typename reference::value_type, typename reference::memory_space> list;
  for (auto&& table : range) list.tables.push_back(make_ref(table));
  return list;
}

/// Refuses what is no table. Does not compile.
template <class... Arguments>
  requires(!(sizeof...(Arguments) >= 1 && (detail::is_one_table<Arguments> && ...)) &&
           !(sizeof...(Arguments) == 1 && (detail::is_range_of_tables<Arguments> && ...)) &&
           !(sizeof...(Arguments) >= 1 && (detail::has_own_list<Arguments> && ...)))
table_list<const float, pageable_space> for_each_table(const Arguments&...) {
  static_assert(
      sizeof...(Arguments) > 1000,
      "ferry: for_each_table takes tables of one element type in one memory space, tensors say, or a range of them, and sharded tables of one type; quantized and cached tables are pooled and stepped one by one.");
  return {};
}

}  // namespace ferry
