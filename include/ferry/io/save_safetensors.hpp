// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/named_array.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {
namespace detail {

void write_safetensors(const std::string& path, const io::named_array* arrays, std::size_t count,
                       const safetensors_metadata& metadata);

}  // namespace detail

namespace io {

/// Writes arrays of any memory spaces to one safetensors file, in the reference implementation's layout.
/// Returns when the file is on the disk.
///
///   ferry::io::save_safetensors("m.safetensors", {{"w", table}, {"b", bias}});
///
///   exec      the save comes after the work enqueued on this instance so far; without it, after the verbs in
///             flight that write to a tensor
///   path      the file; it appears as a whole or not at all, so after a failure an old file is as it was. A
///             symbolic link is followed
///   arrays    names and arrays: bool, integers, half_t, bhalf_t, float, double, complex floats
///   metadata  pairs of UTF-8 strings, {{"format", "pt"}} say
///
/// Throws invalid_argument for names that are not UTF-8, come twice or are "__metadata__", and for an empty
/// handle; io_error, which names the path and what failed.
/// @{
void save_safetensors(const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {});
void save_safetensors(const std::string& path, std::initializer_list<named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {});
template <ExecutionSpace Exec>
void save_safetensors(const Exec& exec, const std::string& path, std::initializer_list<named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  ferry::detail::fence_for_file(exec, "save_safetensors");
  ferry::detail::write_safetensors(path, arrays.begin(), arrays.size(), metadata);
}
template <ExecutionSpace Exec>
void save_safetensors(const Exec& exec, const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  ferry::detail::fence_for_file(exec, "save_safetensors");
  ferry::detail::write_safetensors(path, arrays.data(), arrays.size(), metadata);
}
/// @}

/// Refuses arrays without names. Does not compile.
template <class... Arguments>
  requires(!(std::is_convertible_v<const Arguments&, std::span<const named_array>> || ...))
void save_safetensors(const Arguments&...) {
  static_assert(
      sizeof...(Arguments) > 16,
      "ferry: save_safetensors is called as save_safetensors(path, {{\"weights\", table}, {\"bias\", bias}}), with a name for each array; an execution space instance may come first.");
}

}  // namespace io
}  // namespace ferry
