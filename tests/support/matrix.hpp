#pragma once

#include <ferry/ferry.hpp>

#include <boost/hana/cartesian_product.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>

#include <cstdint>
#include <tuple>

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

}  // namespace ferry_test
