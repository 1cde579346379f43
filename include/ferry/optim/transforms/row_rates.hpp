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

/// A learning rate for each row: what the rule changes in a row's weights is multiplied by factors[row]. For rules whose
/// change is proportional to lr (all of torch.optim but Rprop and ASGD) that is what lr * factors[row] does, decoupled
/// weight decay included; for the others it is what it says.
///
/// Steps that are made up for under step_count::catch_up go by the factors that the row has by then.
///
///   factors   rank-1 array of numbers, one for each row of the table, where the kernels reach it; read by every step until
///             its ticket says that it has ended
template <class T, class Space>
class row_rates {
 public:
  using memory_space = Space;
  static constexpr std::string_view name = "row_rates";

  template <class Array>
    requires ArrayLike<const Array>
  explicit row_rates(const Array& factors) : factors_(::ferry::detail::read_only(make_ref(factors))) {
    static_assert(NumberElement<T>, "ferry: the factors of row_rates must be numbers.");
  }

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

  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.factors = factors_.data;
    made.stride = factors_.row_stride();
    return made;
  }
  template <class Check>
  void for_each_array(const Check& check) const {
    check(factors_);
  }
  void check() const {}

 private:
  array_ref<const T, Space> factors_;
};
template <class Array>
row_rates(const Array&) -> row_rates<std::remove_const_t<typename array_traits<Array>::value_type>,
                                     typename array_traits<Array>::memory_space>;
static_assert(Transform<row_rates<float, pageable_space>>);

}  // namespace ferry::optim
