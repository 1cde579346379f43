// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/mapping.hpp>
#include <ferry/io/detail/npy_header.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/file_table.hpp>

#include <memory>
#include <string>

namespace ferry::io {

/// A read-only table over the pages of a .npy file, which may be larger than the memory. Nothing is read but
/// the header.
///
///   auto features = ferry::io::map_npy<float>("features.npy");
///   ferry::gather(exec, features, indices, batch).wait();
///
///   T      the element type, which must be the file's, see load_npy
///   label  the table's name; without it, the path
///
/// A gather travels on path::staged, the default, or on path::direct if `exec` reaches pageable memory.
/// Throws io_error as load_npy; invalid_argument for other elements, a column-major file of several rows, and
/// for elements that are not aligned in the file: load_npy takes both.
/// @{
template <Element T>
[[nodiscard]] file_table<T> map_npy(const std::string& path, const std::string& label) {
  const auto source = ferry::detail::file::open_to_read("map_npy", path);
  return ferry::detail::map_stored<T>(source, label, ferry::detail::read_npy_header(source));
}
template <Element T>
[[nodiscard]] file_table<T> map_npy(const std::string& path) {
  return map_npy<T>(path, path);
}
/// @}

}  // namespace ferry::io
