// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <string>
#include <type_traits>

namespace ferry::io {

/// A new tensor with the content of a .npy file: versions 1.0 to 3.0, little-endian, C or Fortran order; the
/// tensor is row-major in both cases. A file of a single element gives a tensor [1]. Returns when the tensor
/// is filled.
///
///   T        the element type, which must be the file's: half_t for 'float16', bhalf_t for the bfloat16 of
///            ml_dtypes, a struct for records of as many bytes
///   Space    the tensor's memory space
///   Extents  the tensor's extents type; one that fixes an extent refuses files with another
///   exec     the instance that copies to a device
///   label    the tensor's name; without it, the path
///   convert_dtype{}  as the last argument: numbers of another type are converted, as ferry::copy does
///
/// The file is read straight into memory of the host, by several threads; for a device through two
/// page-locked buffers of 32 MiB. Header and file size are checked before anything is allocated. Throws
/// io_error for a file that can't be read, is malformed or big-endian, or is longer or shorter than its
/// header says; invalid_argument for elements or extents that are not those of the types; bad_alloc and
/// budget_exceeded.
/// @{
template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, ExecutionSpace Exec,
          class... Convert>
[[nodiscard]] tensor<T, Space, Extents> load_npy(const Exec& exec, const std::string& path,
                                                 const std::string& label, Convert...) {
  static_assert((std::is_same_v<Convert, convert_dtype> && ...) && sizeof...(Convert) <= 1,
                "ferry: after the label, a load takes nothing but ferry::io::convert_dtype{}.");
  constexpr bool converts = sizeof...(Convert) == 1;
  const auto source = detail::file::open_to_read("load_npy", path);
  const auto stored = detail::read_npy_header(source);
  detail::require_loadable<T, converts>(source, stored);
  auto array = detail::tensor_of<T, Space, Extents>(label, detail::memory_home(exec), stored.sizes());
  detail::read_array<converts, true>(exec, source, stored, make_ref(array));
  return array;
}
template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, class... Convert>
[[nodiscard]] tensor<T, Space, Extents> load_npy(const std::string& path, const std::string& label,
                                                 Convert... convert) {
  return load_npy<T, Space, Extents>(detail::default_exec_for<Space>(), path, label, convert...);
}
template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank,
          std::same_as<convert_dtype>... Convert>
[[nodiscard]] tensor<T, Space, Extents> load_npy(const std::string& path, Convert... convert) {
  return load_npy<T, Space, Extents>(detail::default_exec_for<Space>(), path, path, convert...);
}
/// @}

/// Fills an array that exists with the content of a .npy file, which has the same extents. Returns when it is
/// filled.
///
///   exec   the load comes after the work enqueued on this instance so far; without it, after the verbs in
///          flight on a tensor
///   path   a file as above
///   array  a tensor, slice, view, Kokkos::View of any layout, span or vector, in any memory space; its
///          element type must be the file's
///   convert_dtype{}  as the last argument: numbers of another type are converted, as ferry::copy does
///
/// Header, file size, element type and extents are checked first. What does not fit throws as above, or
/// invalid_argument for other extents, and the array is as it was. Only a disk that fails in the middle
/// leaves it filled in part, which throws io_error, or a lack of memory in the middle of more than 32 MiB of
/// strided rows or device memory.
/// @{
template <ExecutionSpace Exec, class Array, class... Convert>
  requires ArrayLike<std::remove_reference_t<Array>>
void load_npy(const Exec& exec, const std::string& path, Array&& array, Convert...) {
  const auto source = detail::file::open_to_read("load_npy", path);
  detail::fill_array<true, Convert...>(exec, source, detail::read_npy_header(source), array);
}
template <class Array, class... Convert>
  requires ArrayLike<std::remove_reference_t<Array>>
void load_npy(const std::string& path, Array&& array, Convert... convert) {
  load_npy(detail::default_exec_for<detail::file_space<Array>>(), path, array, convert...);
}
/// @}
/// Refuses a load without the type of its elements, and an array before the path. Does not compile.
/// @{
template <class Path>
  requires(std::is_convertible_v<const Path&, std::string>)
void load_npy(const Path&) { detail::refuse_load_without_type<Path>(); }
template <class Array, class Path>
  requires(ArrayLike<std::remove_reference_t<Array>> && !std::is_convertible_v<const Array&, std::string> &&
           std::is_convertible_v<const Path&, std::string>)
void load_npy(Array&&, const Path&) { detail::refuse_array_before_path<Path>(); }
/// @}

}  // namespace ferry::io
