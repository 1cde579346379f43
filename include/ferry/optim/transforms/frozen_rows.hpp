// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// Rows with mask[row] != 0 keep their weights and state.
///
///   mask  rank-1 array of integers, one per row of the table, in memory that the kernels reach; it must
///         live and stay unchanged until the step that reads it has ended
template <class T, class Space>
class frozen_rows {
 public:
  using memory_space = Space;                              ///< see ferry::Transform
  static constexpr std::string_view name = "frozen_rows";  ///< see ferry::Transform

  /// Reads `mask` at every step; see above. It is not copied.
  template <class Array>
    requires ArrayLike<const Array>
  explicit frozen_rows(const Array& mask) : mask_(::ferry::detail::read_only(make_ref(mask))) {
    static_assert(std::integral<T>, "ferry: the mask of frozen_rows must be of integers.");
  }

  /// As above, with a slice or a view that the call makes. Does not compile for a temporary tensor or vector.
  template <class Array>
    requires ArrayLike<const Array>
  explicit frozen_rows(const Array&& mask) : frozen_rows(mask) { ::ferry::detail::require_lasting<Array>(); }

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    const T* mask;
    std::int64_t stride;

    KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const { return mask[row * stride] == T(0); }
    /// @}
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> part;
    part.mask = mask_.data;
    part.stride = mask_.row_stride();
    return part;
  }
  template <class Visit>
  void for_each_array(const Visit& visit) const {
    visit(mask_);
  }
  void check() const {}
  /// @}

 private:
  ferry::detail::array_ref<const T, Space> mask_;
};
/// The element type and the memory space follow from the mask.
template <class Array>
frozen_rows(const Array&) -> frozen_rows<std::remove_const_t<typename array_traits<Array>::value_type>,
                                         typename array_traits<Array>::memory_space>;
static_assert(Transform<frozen_rows<std::uint8_t, pageable_space>>);

}  // namespace ferry::optim
