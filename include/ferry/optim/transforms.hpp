// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/detail/square_sums.hpp>
#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <Kokkos_Macros.hpp>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// Limits the Euclidean norm of a row's gradient: a larger norm is scaled by max_norm / (norm + 1e-6). The
/// formula is that of torch.nn.utils.clip_grad_norm_, applied per row. Duplicates are combined first.
struct clip_norm {
  static constexpr std::string_view name = "clip_norm";  ///< see ferry::Transform

  double max_norm = 1.0;  ///< largest norm, >= 0

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    static constexpr bool clips_norm = true;
    Compute max_norm;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient_factor(const Compute& squares, const Compute& unit) const {
      // Divided by the unit after the norm, which may be larger than the largest number.
      const Compute inverse = inverse_unit(unit);
      const Compute factor = max_norm / (Kokkos::sqrt(squares) + Compute(1e-6) * inverse) * inverse;
      return factor > Compute(1) ? Compute(1) : factor;
    }
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, static_cast<Compute>(max_norm)};
  }
  void for_each_array(const auto&) const {}
  void check() const { require_not_negative(name, "max_norm", max_norm); }
  void check_in_float() const { require_float(name, "max_norm", max_norm, float_underflow(max_norm)); }
  /// @}
};

/// Clamps every element of a gradient to [-limit, limit], as torch.nn.utils.clip_grad_value_. A NaN stays a
/// NaN.
struct clip_value {
  static constexpr std::string_view name = "clip_value";  ///< see ferry::Transform

  double limit = 1.0;  ///< largest magnitude, >= 0

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const {
      return g > limit ? limit : g < -limit ? -limit : g;
    }
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, static_cast<Compute>(limit)};
  }
  void for_each_array(const auto&) const {}
  void check() const { require_not_negative(name, "limit", limit); }
  void check_in_float() const { require_float(name, "limit", limit, float_underflow(limit)); }
  /// @}
};

/// Limits the Euclidean norm of a row's new weights: a larger norm is scaled by limit / (norm + 1e-7). The
/// formula is that of max_norm of torch.nn.Embedding, which applies it before a lookup.
struct max_norm {
  static constexpr std::string_view name = "max_norm";  ///< see ferry::Transform

  double limit = 1.0;  ///< largest norm, >= 0

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool limits_norm = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute weight_factor(const Compute& squares, const Compute& unit) const {
      // Divided by the unit after the norm, which may be larger than the largest number.
      const Compute inverse = inverse_unit(unit);
      const Compute norm = Kokkos::sqrt(squares);
      return norm > limit * inverse ? limit / (norm + Compute(1e-7) * inverse) * inverse : Compute(1);
    }
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, static_cast<Compute>(limit)};
  }
  void for_each_array(const auto&) const {}
  void check() const { require_not_negative(name, "limit", limit); }
  void check_in_float() const { require_float(name, "limit", limit, float_underflow(limit)); }
  /// @}
};

/// Divides the gradients by the factor of a scaled loss. torch.amp.GradScaler scales losses in this way to
/// keep 16-bit gradients from underflowing. With nonfinite::skip, a step whose gradients overflowed is left
/// out.
struct grad_scale {
  static constexpr std::string_view name = "grad_scale";  ///< see ferry::Transform

  double scale = 1.0;  ///< factor of the loss, > 0 and finite

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    Compute inverse;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const { return g * inverse; }
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, static_cast<Compute>(1.0 / scale)};
  }
  void for_each_array(const auto&) const {}
  void check() const {
    require_option(name, "scale", scale, scale > 0.0 && ferry::detail::is_finite(scale), "> 0 and finite");
  }
  void check_in_float() const {
    const double inverse = 1.0 / scale;
    require_float(name, "scale", scale,
                  float_overflow(inverse) != nullptr ? "so small that 1 / scale is infinite" : nullptr);
    require_float(name, "scale", scale,
                  float_underflow(inverse) != nullptr ? "so large that 1 / scale is 0" : nullptr);
  }
  /// @}
};

namespace detail {

/// The array of a transform that reads one number for each row of the table.
template <class T, class Space>
class row_numbers {
 public:
  using memory_space = Space;  ///< see ferry::Transform

  /// Refers to `numbers`.
  template <class Array>
    requires ArrayLike<const Array>
  explicit row_numbers(const Array& numbers) : numbers_(ferry::detail::read_only(make_ref(numbers))) {}
  /// As above, with a slice or a view that the call makes. Does not compile for a temporary tensor or vector.
  template <class Array>
    requires ArrayLike<const Array>
  explicit row_numbers(const Array&& numbers) : row_numbers(numbers) {
    ferry::detail::require_lasting<Array>();
  }

  /// Members of ferry::Transform.
  /// @{
  void for_each_array(const auto& visit) const { visit(numbers_); }
  void check() const {}
  /// @}

 protected:
  ferry::detail::array_ref<const T, Space> numbers_;
};

}  // namespace detail

/// A learning rate per row: the change that the rule makes to the weights of a row is multiplied by
/// factors[row]. For rules whose change is proportional to lr (those of torch.optim except Rprop and ASGD)
/// this equals lr * factors[row], also for decoupled weight decay.
///
/// step_count::catch_up applies missed steps with the current factors.
///
///   factors  rank-1 array of numbers, one per row of the table, in memory that the kernels reach; it is read
///            at every step, so it must live and stay unchanged until the step that reads it has ended
template <class T, class Space>
class row_rates : public detail::row_numbers<T, Space> {
  static_assert(NumberElement<T>, "ferry: the factors of row_rates must be numbers.");

 public:
  static constexpr std::string_view name = "row_rates";  ///< see ferry::Transform
  using detail::row_numbers<T, Space>::row_numbers;

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    const T* factors;
    std::int64_t stride;

    KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                                std::int64_t row) const {
      return before + convert<Compute>(factors[row * stride]) * (after - before);
    }
  };
  /// See ferry::Transform.
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, this->numbers_.data, this->numbers_.row_stride()};
  }
};
/// The element type and the memory space follow from the factors.
template <class Array>
row_rates(const Array&) -> row_rates<std::remove_const_t<typename array_traits<Array>::value_type>,
                                     typename array_traits<Array>::memory_space>;

/// Rows with mask[row] != 0 keep their weights and state.
///
///   mask  rank-1 array of integers, one per row of the table, in memory that the kernels reach; it is read
///         at every step, so it must live and stay unchanged until the step that reads it has ended
template <class T, class Space>
class frozen_rows : public detail::row_numbers<T, Space> {
  static_assert(std::integral<T>, "ferry: the mask of frozen_rows must be of integers.");

 public:
  static constexpr std::string_view name = "frozen_rows";  ///< see ferry::Transform
  using detail::row_numbers<T, Space>::row_numbers;

  template <class Compute>
  struct kernel : transform_defaults {
    const T* mask;
    std::int64_t stride;

    KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const { return mask[row * stride] == T(0); }
  };
  /// See ferry::Transform.
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {{}, this->numbers_.data, this->numbers_.row_stride()};
  }
};
/// The element type and the memory space follow from the mask.
template <class Array>
frozen_rows(const Array&) -> frozen_rows<std::remove_const_t<typename array_traits<Array>::value_type>,
                                         typename array_traits<Array>::memory_space>;

}  // namespace ferry::optim
