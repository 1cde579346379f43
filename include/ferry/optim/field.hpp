// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// One array of an optimizer's state, with the table's shape.
struct field {
  const char* name;      ///< torch.optim's
  double initial = 0.0;  ///< value of its elements
  bool active = true;    ///< whether these options use it
};

/// One number of an optimizer's state per row of the table. Always in use.
struct row_field {
  const char* name;      ///< torch.optim's
  double initial = 0.0;  ///< value of each row
};

namespace detail {

using ferry::detail::fields_of;

/// The fields that a rule's options use: those with an element for each weight, then the row fields.
struct field_list {
  std::array<row_field, 12> facts{};
  int count = 0;
  int fields = 0;  ///< of those with an element for each weight
};

[[noreturn]] void refuse_fields(std::string_view rule, int active, int least);

/// Throws invalid_argument if there are fewer than the rule's update is compiled for.
template <Optimizer Rule>
field_list active_fields(const Rule& rule) {
  static_assert(Rule::min_fields >= 0 && Rule::min_fields <= fields_of<Rule, field>,
                "ferry: min_fields of an optimizer rule must be from 0 to the number of fields that it has.");
  static_assert(fields_of<Rule, field> <= 8 && fields_of<Rule, row_field> <= 4,
                "ferry: an optimizer rule has at most 8 fields and 4 row_fields.");
  static_assert(
      RowOptimizer<Rule> || fields_of<Rule, row_field> == 0,
      "ferry: a row_field is for rules that look at the row as a whole, whose update has sums and finalize_sums.");
  field_list list;
  const auto add = [&](const auto& described) {
    list.facts[static_cast<std::size_t>(list.count++)] = {described.name, described.initial};
  };
  boost::hana::for_each(rule.fields(), [&](const auto& described) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(described)>, field>)
      if (described.active) add(described);
  });
  list.fields = list.count;
  if (list.fields < Rule::min_fields) refuse_fields(Rule::name, list.fields, Rule::min_fields);
  boost::hana::for_each(rule.fields(), [&](const auto& described) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(described)>, row_field>) add(described);
  });
  return list;
}

}  // namespace detail
}  // namespace ferry::optim
