// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace ferry {

/// Stands for an extent that is known at run time only.
inline constexpr std::size_t dyn = static_cast<std::size_t>(-1);

/// Largest number of extents of a tensor.
inline constexpr std::size_t max_rank = 8;

/// Rank and extents known at compile time; `dyn` is an extent known at run time. extents<dyn, 128> is
/// a table of width 128.
template <std::size_t... Sizes>
struct extents {
  static_assert(sizeof...(Sizes) >= 1 && sizeof...(Sizes) <= max_rank,
                "ferry::extents: a tensor has 1 to 8 extents");
  /// The type fixes the rank.
  static constexpr bool has_static_rank = true;
  /// Number of extents.
  static constexpr std::size_t rank = sizeof...(Sizes);
  /// Extent i, `dyn` if it is known at run time only.
  KOKKOS_FUNCTION static constexpr std::size_t value(std::size_t i) {
    std::size_t position = 0;
    std::size_t size = dyn;
    ((position++ == i ? void(size = Sizes) : void()), ...);
    return size;
  }
};

/// Rank and extents known at run time: the default of ferry::tensor. The constructor's arguments give the
/// rank.
struct dynamic_rank {
  /// The type does not fix the rank.
  static constexpr bool has_static_rank = false;
};

namespace detail {

/// The rank that Extents fixes, or the other number.
template <class Extents, std::size_t Other>
inline constexpr std::size_t rank_or = Other;
template <std::size_t... Sizes, std::size_t Other>
inline constexpr std::size_t rank_or<extents<Sizes...>, Other> = sizeof...(Sizes);

/// The width that Extents fixes, or dyn.
template <class Extents>
inline constexpr std::size_t static_width = dyn;
template <std::size_t First, std::size_t... Others>
inline constexpr std::size_t static_width<extents<First, Others...>> = ((Others == dyn) || ...)
                                                                           ? dyn
                                                                           : (std::size_t{1} * ... * Others);

/// True if Extents fixes all extents.
template <class Extents>
inline constexpr bool is_fixed = false;
template <std::size_t... Sizes>
inline constexpr bool is_fixed<extents<Sizes...>> = ((Sizes != dyn) && ...);

/// Writes all extents to `sizes`, and returns the rank. `fixed`: the extents of a type of fixed rank, dyn for
/// those that `arguments` has; empty for dynamic_rank. See shape::make.
std::size_t fill_sizes(std::size_t* sizes, std::span<const std::size_t> fixed,
                       std::span<const std::size_t> arguments, const std::string& label,
                       std::size_t element_bytes);
std::string text_of_sizes(std::span<const std::size_t> sizes);
[[noreturn]] void refuse_extent(const std::string& label, long long size);

}  // namespace detail

/// Rank and extents of an array. The static ones come from Extents, a ferry::extents or dynamic_rank.
template <class Extents>
class shape {
 public:
  /// No extents; of static rank, extents of zero.
  shape() = default;

  /// Number of extents.
  KOKKOS_FUNCTION constexpr std::size_t rank() const {
    if constexpr (Extents::has_static_rank)
      return Extents::rank;
    else
      return rank_;
  }

  /// Extent i, 1 for i >= rank().
  KOKKOS_FUNCTION constexpr std::size_t extent(std::size_t i) const { return i < rank() ? sizes_[i] : 1; }

  /// The first extent, 0 for rank 0.
  KOKKOS_FUNCTION constexpr std::size_t rows() const { return rank() == 0 ? 0 : sizes_[0]; }

  /// Elements of a row: the product of the extents after the first; 0 for rank 0.
  KOKKOS_FUNCTION constexpr std::size_t width() const {
    if (rank() == 0) return 0;
    std::size_t product = 1;
    for (std::size_t i = 1; i < rank(); ++i) product *= sizes_[i];
    return product;
  }

  /// Number of elements, rows() * width().
  KOKKOS_FUNCTION constexpr std::size_t size() const { return rows() * width(); }

  /// Row-major position of element (i, j, ...), one index per extent. Not checked.
  template <class... Indices>
  KOKKOS_FUNCTION constexpr std::size_t offset(Indices... indices) const {
    static_assert(sizeof...(Indices) >= 1 && sizeof...(Indices) <= max_rank);
    if constexpr (Extents::has_static_rank)
      static_assert(sizeof...(Indices) == Extents::rank, "ferry::tensor_view: one index for each extent");
    const std::size_t index[] = {static_cast<std::size_t>(indices)...};
    std::size_t position = index[0];
    for (std::size_t i = 1; i < sizeof...(Indices); ++i) position = position * static_size(i) + index[i];
    return position;
  }

  /// True if (i, j, ...) has one index per extent and lies inside of the extents.
  template <class... Indices>
  constexpr bool holds(Indices... indices) const {
    if (sizeof...(Indices) != rank()) return false;
    std::size_t i = 0;
    return ((static_cast<std::size_t>(indices) < extent(i++)) && ...);
  }

  /// A shape with another first extent. Other must not fix that one.
  template <class Other>
  constexpr shape<Other> with_rows(std::size_t rows) const {
    shape<Other> result;
    result.rank_ = rank_;
    for (std::size_t i = 0; i < rank(); ++i) result.sizes_[i] = sizes_[i];
    if (rank() != 0) result.sizes_[0] = rows;
    return result;
  }

  /// A shape from all extents, or from the dynamic ones of Extents only. Throws invalid_argument, naming
  /// `label`, if a size contradicts a static extent, or if that number of elements of `element_bytes`
  /// bytes exceeds the address space.
  static shape make(std::span<const std::size_t> sizes, const std::string& label, std::size_t element_bytes) {
    shape result;
    if constexpr (Extents::has_static_rank) {
      static constexpr auto fixed = [] {
        std::array<std::size_t, Extents::rank> list{};
        for (std::size_t i = 0; i < Extents::rank; ++i) list[i] = Extents::value(i);
        return list;
      }();
      detail::fill_sizes(result.sizes_, fixed, sizes, label, element_bytes);
    } else {
      result.rank_ = detail::fill_sizes(result.sizes_, {}, sizes, label, element_bytes);
    }
    return result;
  }

  /// The extents as text, such as "[1000 x 128]".
  [[nodiscard]] std::string to_string() const { return detail::text_of_sizes({sizes_, rank()}); }

  /// All extents.
  [[nodiscard]] std::span<const std::size_t> sizes() const { return {sizes_, rank()}; }

 private:
  template <class Other>
  friend class shape;

  KOKKOS_FUNCTION constexpr std::size_t static_size(std::size_t i) const {
    if constexpr (Extents::has_static_rank)
      if (Extents::value(i) != dyn) return Extents::value(i);
    return sizes_[i];
  }

  std::size_t sizes_[detail::rank_or<Extents, max_rank>] = {};
  std::size_t rank_ = 0;
};

namespace detail {
/// The user's extents, of any integer type, as std::size_t. Throws invalid_argument, naming `label`, for a
/// negative one.
template <std::integral... Sizes>
std::array<std::size_t, sizeof...(Sizes)> checked_extents(const std::string& label, Sizes... sizes) {
  [[maybe_unused]] const auto checked = [&label](auto size) {
    if (std::cmp_less(size, 0)) refuse_extent(label, static_cast<long long>(size));
    return static_cast<std::size_t>(size);
  };
  return {checked(sizes)...};
}

/// The extents type of a slice: the first extent is known at run time only.
template <class Extents>
struct extents_of_rows {
  using type = Extents;
};
template <std::size_t First, std::size_t... Others>
struct extents_of_rows<extents<First, Others...>> {
  using type = extents<dyn, Others...>;
};

}  // namespace detail

}  // namespace ferry
