// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry::optim {

/// A learning rate per row: the change that the rule makes to the weights of a row is multiplied by
/// factors[row]. For rules whose change is proportional to lr (those of torch.optim except Rprop and ASGD)
/// this equals lr * factors[row], also for decoupled weight decay.
///
/// step_count::catch_up applies missed steps with the current factors.
///
///   factors  rank-1 array of numbers, one per row of the table, in memory that the kernels reach; it must
///            live and stay unchanged until the step that reads it has ended
template <class T, class Space>
class row_rates {
 public:
  using memory_space = Space;                            ///< see ferry::Transform
  static constexpr std::string_view name = "row_rates";  ///< see ferry::Transform

  /// Reads `factors` at every step; see above. It is not copied.
  template <class Array>
    requires ArrayLike<const Array>
  explicit row_rates(const Array& factors) : factors_(::ferry::detail::read_only(make_ref(factors))) {
    static_assert(NumberElement<T>, "ferry: the factors of row_rates must be numbers.");
  }

  /// As above, with a slice or a view that the call makes. Does not compile for a temporary tensor or vector.
  template <class Array>
    requires ArrayLike<const Array>
  explicit row_rates(const Array&& factors) : row_rates(factors) {
    ::ferry::detail::require_lasting<Array>();
  }

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    static constexpr bool allows_catch_up = true;
    const T* factors;
    std::int64_t stride;

    KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                                std::int64_t row) const {
      return before + convert<Compute>(factors[row * stride]) * (after - before);
    }
    /// @}
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> part;
    part.factors = factors_.data;
    part.stride = factors_.row_stride();
    return part;
  }
  template <class Visit>
  void for_each_array(const Visit& visit) const {
    visit(factors_);
  }
  void check() const {}
  /// @}

 private:
  ferry::detail::array_ref<const T, Space> factors_;
};
/// The element type and the memory space follow from the factors.
template <class Array>
row_rates(const Array&) -> row_rates<std::remove_const_t<typename array_traits<Array>::value_type>,
                                     typename array_traits<Array>::memory_space>;
static_assert(Transform<row_rates<float, pageable_space>>);

}  // namespace ferry::optim
