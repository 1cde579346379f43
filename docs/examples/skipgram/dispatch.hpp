// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// From names known at run time to types known at compile time.
///
/// A list is a Hana tuple of entries, each a type with the name that the user types. dispatch() walks the
/// lists, finds the entry of each choice, and calls the visitor with one hana::type for each list:
///
///   constexpr auto shapes = hana::make_tuple(entry<circle>{"circle"}, entry<square>{"square"});
///   auto area = dispatch<double>([](auto shape) { return typename decltype(shape)::type{}.area(); },
///                                choice{shapes, "square"});
///
/// The visitor is compiled for every combination of entries; what must not be compiled it leaves out with if
/// constexpr.
namespace skipgram {

namespace hana = boost::hana;

template <class T>
struct entry {
  std::string_view name;
  hana::type<T> type = {};
};

template <class List>
struct choice {
  const List& list;
  std::string_view name;
};
template <class List>
choice(const List&, std::string_view) -> choice<List>;

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  hana::for_each(list, [&](const auto& policy) { names.emplace_back(policy.name); });
  return names;
}

/// All choices are made: the visitor has bound its types.
template <class Result, class Visitor>
Result dispatch(const Visitor& visit) {
  return visit();
}

/// Binds the type of the first choice, goes on with the others. Throws std::invalid_argument for an unknown
/// name.
template <class Result, class Visitor, class List, class... More>
Result dispatch(const Visitor& visit, const choice<List>& first, const More&... more) {
  Result result{};
  bool matches = false;
  hana::for_each(first.list, [&](const auto& policy) {
    if (policy.name != first.name) return;
    matches = true;
    result = dispatch<Result>([&](auto... rest) { return visit(policy.type, rest...); }, more...);
  });
  if (!matches) throw std::invalid_argument("there is no choice named '" + std::string(first.name) + "'");
  return result;
}

}  // namespace skipgram
