// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The extents type of an array's clone.
template <class Array>
struct cloned_extents {
  using type = dynamic_rank;
};
template <class Array>
  requires requires { Array::extents_type::has_static_rank; }
struct cloned_extents<Array> {
  using type = typename Array::extents_type;
};

}  // namespace detail

/// A deep copy as a new tensor in Space. get() of the future returns it once the copy has ended.
///
///   auto saved = ferry::clone<ferry::pageable_space>(exec, table, "saved");
///   ...
///   const auto weights = saved.get();
///
///   array  a tensor, slice or view, or any other array that ferry::copy takes, in any memory space and with
///          any strides; the copy is row-major
///   label  name of the new tensor; default that of the array with "::clone" appended
///
/// A copy in device_space lies on the device of the array, else on that of `exec`.
/// The new tensor has the array's element type and extents; from a tensor, slice or view also its extents
/// type. Enqueued on `exec` as ferry::copy. The array must live until the work has ended, see ferry::future.
/// Throws invalid_argument for an empty handle and if `exec` is being captured into a graph, and
/// bad_alloc.
template <MemorySpace Space, class Exec, class Array>
  requires(detail::Fits<detail::clone_arguments, const Exec&, const Array&>)
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const Array& array, std::string label = {}) {
  detail::require_role<detail::roles::array.kinds, Array>();
  using element = std::remove_const_t<typename array_traits<Array>::value_type>;
  const auto source = make_ref(array);
  if (source.rank == 0)
    throw invalid_argument(
        detail::joined("ferry::clone: '", source.label, "' is an empty handle without extents"));
  if (execution_backend<Exec>::capturing(exec))
    throw invalid_argument(
        "ferry::clone: the instance is being captured into a graph, but a new tensor would be made once only; copy into a tensor of yours");
  if (label.empty()) label = std::string(source.label) + "::clone";
  auto target = detail::tensor_like<element, Space, typename detail::cloned_extents<Array>::type>(
      source, source.device() >= 0 ? device{source.device()} : detail::memory_home(exec), source.rows(),
      std::move(label));
  ticket work = ferry::copy(exec, array, target);
  return future<decltype(target)>(std::move(work), std::move(target));
}

/// As above, in the memory space of the array. tensor::clone(exec) calls it.
template <class Exec, class Array>
  requires(detail::Fits<detail::clone_arguments, const Exec&, const Array&>)
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const Array& array, std::string label = {}) {
  detail::require_role<detail::roles::array.kinds, Array>();
  return ferry::clone<typename array_traits<Array>::memory_space>(exec, array, std::move(label));
}

namespace detail {
template <class Exec>
struct clone_function {
  template <class Array>
  auto operator()(const Exec& exec, const Array& array) const {
    return ferry::clone(exec, array);
  }
};
}  // namespace detail

}  // namespace ferry
