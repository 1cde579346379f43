#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Complex.hpp>

#include <bit>
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>

namespace ferry::detail {

static_assert(std::endian::native == std::endian::little,
              "ferry: files are written as the memory is, and their formats are little-endian.");

/// What the bytes of an element mean.
enum class dtype_kind : unsigned char { boolean, integer, unsigned_integer, real, brain, complex, record };

/// The type of the elements of an array in a file.
struct dtype {
  dtype_kind kind = dtype_kind::record;
  std::size_t bytes = 0;

  bool operator==(const dtype&) const = default;

  /// NumPy's name: "float32", "bfloat16"; "records of 12 bytes" for structs.
  [[nodiscard]] std::string name() const {
    const std::string bits = std::to_string(bytes * 8);
    switch (kind) {
      case dtype_kind::boolean:
        return "bool";
      case dtype_kind::integer:
        return "int" + bits;
      case dtype_kind::unsigned_integer:
        return "uint" + bits;
      case dtype_kind::real:
        return "float" + bits;
      case dtype_kind::brain:
        return "bfloat16";
      case dtype_kind::complex:
        return "complex" + bits;
      case dtype_kind::record:
        break;
    }
    return "records of " + std::to_string(bytes) + " bytes";
  }
};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_complex<Kokkos::complex<T>> = true;

/// The type of ferry's elements. Enumerations, std::byte among them, are their integers; structs are records.
template <class T>
consteval dtype dtype_of() {
  if constexpr (std::is_const_v<T>)
    return dtype_of<std::remove_const_t<T>>();
  else if constexpr (std::is_enum_v<T>)
    return dtype_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, bool>)
    return {dtype_kind::boolean, sizeof(T)};
  else if constexpr (std::is_integral_v<T>)
    return {std::is_signed_v<T> ? dtype_kind::integer : dtype_kind::unsigned_integer, sizeof(T)};
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, half_t>)
    return {dtype_kind::real, sizeof(T)};
  else if constexpr (std::is_same_v<T, bhalf_t>)
    return {dtype_kind::brain, sizeof(T)};
  else if constexpr (is_complex<T>)
    return {dtype_kind::complex, sizeof(T)};
  else
    return {dtype_kind::record, sizeof(T)};
}

}  // namespace ferry::detail
