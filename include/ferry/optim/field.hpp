#pragma once

#include <boost/hana/tuple.hpp>

#include <type_traits>
#include <utility>

namespace ferry::optim {

/// One array of an optimizer's state, shaped like the table: torch.optim's name for it, the value it starts
/// with, and whether these options use it at all.
struct field {
  const char* name;
  double initial = 0.0;
  bool active = true;
};

/// One number of an optimizer's state for each row of the table; always in use.
struct row_field {
  const char* name;
  double initial = 0.0;
};

namespace detail {

template <class Kind, class Fields>
inline constexpr int count_fields = 0;
template <class Kind, class... Fields>
inline constexpr int count_fields<Kind, boost::hana::tuple<Fields...>> =
    (0 + ... + (std::is_same_v<Kind, Fields> ? 1 : 0));

/// How many fields of a kind a rule describes, whatever its options.
template <class Rule, class Kind>
inline constexpr int fields_of = count_fields<Kind, decltype(std::declval<const Rule&>().fields())>;

}  // namespace detail
}  // namespace ferry::optim
