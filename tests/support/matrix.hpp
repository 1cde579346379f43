// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <boost/hana/cartesian_product.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

/// Type matrices for TEMPLATE_LIST_TEST_CASE, made as Hana products of the axes.
namespace ferry_test {

namespace hana = boost::hana;

template <class... Ts>
inline constexpr auto axis = hana::tuple_t<Ts...>;

inline constexpr auto spaces =
    axis<ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space>;
inline constexpr auto elements =
    axis<float, double, ferry::half_t, ferry::bhalf_t, std::int32_t, std::int64_t>;
inline constexpr auto floats = axis<float, double, ferry::half_t, ferry::bhalf_t>;
inline constexpr auto index_types = axis<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;
inline constexpr auto bounds = axis<ferry::bounds::check, ferry::bounds::clamp, ferry::bounds::skip>;
inline constexpr auto combinations =
    axis<ferry::duplicates::sum, ferry::duplicates::mean, ferry::duplicates::last, ferry::duplicates::first>;

/// One point of a product: std::tuple<A, B, ...>; Catch2 lists them in a std::tuple.
struct as_point {
  template <class Types>
  constexpr auto operator()(Types types) const {
    return hana::unpack(types, hana::template_<std::tuple>);
  }
};

template <class Product>
struct listed;
template <class... Points>
struct listed<hana::tuple<Points...>> {
  using type = std::tuple<typename decltype(as_point{}(Points{}))::type...>;
};

/// product<decltype(a), decltype(b)> is the list of all points of a x b.
template <class... Axes>
using product = typename listed<std::decay_t<decltype(hana::cartesian_product(
    hana::make_tuple(std::declval<std::decay_t<Axes>>()...)))>>::type;

template <std::size_t I, class Point>
using at = std::tuple_element_t<I, Point>;

// Covering lists, for templates that use no more than two of their axes at a time: a product compiles what is the
// same for them again and again.

template <class Axis>
using types_of = typename decltype(as_point{}(std::declval<std::decay_t<Axis>>()))::type;
template <class Axis>
inline constexpr std::size_t length = std::tuple_size_v<types_of<Axis>>;
/// After its last element an axis starts over.
template <class Axis, std::size_t I>
using nth = std::tuple_element_t<I % length<Axis>, types_of<Axis>>;

template <class A, class B, std::size_t... Steps>
struct zip {
  static constexpr std::size_t steps[] = {Steps...};
  template <std::size_t... I>
  static auto points(std::index_sequence<I...>)
      -> std::tuple<std::tuple<nth<A, I>, nth<B, I % length<A> + steps[I / length<A>]>>...>;
  using type = decltype(points(std::make_index_sequence<length<A> * sizeof...(Steps)>{}));
};
template <class A, class B, class C>
struct rotation {
  template <std::size_t... I>
  static auto points(std::index_sequence<I...>)
      -> std::tuple<std::tuple<nth<A, I / length<B>>, nth<B, I>, nth<C, I / length<B> + I % length<B>>>...>;
  using type = decltype(points(std::make_index_sequence<length<A> * length<B>>{}));
};

/// zipped<decltype(a), decltype(b), steps...>: for each step all elements of a, each with the element of b that lies so
/// many places further on.
template <class A, class B, std::size_t... Steps>
using zipped = typename zip<A, B, Steps...>::type;

/// rotated<decltype(a), decltype(b), decltype(c)>: all points of a x b, each with one element of c in turn. An element of
/// a meets all of c if b is as long as c, and one of b if a is.
template <class A, class B, class C>
using rotated = typename rotation<A, B, C>::type;

}  // namespace ferry_test
