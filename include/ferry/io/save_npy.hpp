// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstdint>
#include <string>

namespace ferry::io {

/// Writes an array of any memory space to a .npy file, which np.load reads: version 1.0, C order,
/// little-endian. Elements of half_t are 'float16', those of bhalf_t the 'bfloat16' of ml_dtypes ('<V2'), and
/// structs records ('|V12'). Returns when the file is on the disk.
///
///   exec   the save comes after the work enqueued on this instance so far; without it, after the verbs in
///          flight that write to a tensor
///   path   the file; it appears as a whole or not at all, so after a failure an old file is as it was. A
///          symbolic link is followed
///   array  a tensor, slice, view, Kokkos::View of any layout, span or vector
///
/// Memory of the host is written in place by several threads. A device's, and strided arrays, go through two
/// page-locked buffers of 32 MiB. Throws io_error, which names the path and
/// what failed, and invalid_argument for an empty handle.
/// @{
template <ExecutionSpace Exec, ArrayLike Array>
void save_npy(const Exec& exec, const std::string& path, const Array& array) {
  detail::require_file_elements<Array>();
  detail::require_reach<Exec, Array>();
  detail::fence_for_file(exec, "save_npy");
  const auto source = detail::read_only(make_ref(array));
  detail::require_extents("save_npy", source.note());
  detail::atomic_file target("save_npy", path);
  const std::uint64_t offset =
      detail::begin_npy(target.content(), detail::dtype_of<detail::file_element<Array>>(), source);
  detail::write_rows<detail::may_have_strides<Array>>(exec, source, target.content(), offset);
  target.commit();
}
template <ArrayLike Array>
void save_npy(const std::string& path, const Array& array) {
  save_npy(detail::default_exec_for<detail::file_space<Array>>(), path, array);
}
/// @}
/// Refuses an array before the path. Does not compile.
/// @{
template <ArrayLike Array, class Path>
  requires(!std::is_convertible_v<const Array&, std::string> &&
           std::is_convertible_v<const Path&, std::string>)
void save_npy(const Array&, const Path&) { detail::refuse_array_before_path<Path>(); }
template <ExecutionSpace Exec, ArrayLike Array, class Path>
  requires(!std::is_convertible_v<const Array&, std::string> &&
           std::is_convertible_v<const Path&, std::string>)
void save_npy(const Exec&, const Array&, const Path&) { detail::refuse_array_before_path<Path>(); }
/// @}

}  // namespace ferry::io
