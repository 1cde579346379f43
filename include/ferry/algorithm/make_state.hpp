#pragma once

#include <ferry/algorithm/checks.hpp>
#include <ferry/algorithm/init.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/tensor/numeric.hpp>

#include <boost/hana/for_each.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::optim {

/// The state that `rule` needs for `table`, with its initial values: in the table's memory space, or in
/// Space; elements of StateType, by default the accumulation type of the table's (float for half and
/// bfloat16, else the table's own). Blocks until the values are set. Throws invalid_argument for options
/// outside of their range, bad_alloc.
template <MemorySpace Space, class StateType, class Rule, class Table>
[[nodiscard]] auto make_state(const Rule& rule, const Table& table) {
  static_assert(Optimizer<Rule>, "ferry: make_state needs an optimizer rule, ferry::optim::adam say.");
  ferry::detail::require_rows<Table>();
  static_assert(FloatingElement<StateType>,
                "ferry: optimizer state is kept in float, double, half_t or bhalf_t elements only.");
  rule.check();
  const auto like = make_ref(table);
  state<Rule, StateType, Space> made;
  const auto filled = [&](const char* name, std::int64_t width, double initial) {
    const std::array<std::size_t, 2> extents{static_cast<std::size_t>(like.rows()),
                                             static_cast<std::size_t>(width)};
    tensor<StateType, Space> values(like.label + "::" + name, extents);
    if constexpr (std::is_same_v<Space, device_space>)
      ferry::detail::fill(Kokkos::DefaultExecutionSpace{}, make_ref(values), static_cast<StateType>(initial));
    else
      ferry::detail::fill(Kokkos::DefaultHostExecutionSpace{}, make_ref(values),
                          static_cast<StateType>(initial));
    return values;
  };
  int row_fields = 0;
  boost::hana::for_each(rule.fields(), [&](const auto& described) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(described)>, row_field>)
      made.add_row_field(row_fields++, described.name, filled(described.name, 1, described.initial));
    else if (described.active)
      made.add_field(described.name, filled(described.name, like.width(), described.initial));
  });
  return made;
}

template <MemorySpace Space, class Rule, class Table>
[[nodiscard]] auto make_state(const Rule& rule, const Table& table) {
  ferry::detail::require_rows<Table>();
  using element = std::remove_const_t<typename array_traits<Table>::value_type>;
  return make_state<Space, accumulation_t<element>>(rule, table);
}

template <class Rule, class Table>
[[nodiscard]] auto make_state(const Rule& rule, const Table& table) {
  ferry::detail::require_rows<Table>();
  return make_state<typename array_traits<Table>::memory_space>(rule, table);
}

}  // namespace ferry::optim
