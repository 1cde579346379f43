// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/array_arguments.hpp>
#include <ferry/io/detail/atomic_file.hpp>
#include <ferry/io/detail/json_text.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/named_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {
namespace detail {

/// Throws invalid_argument for names that a header can't hold.
template <class...>
void require_safetensors_names(const std::string& path, std::vector<std::string_view> names,
                               const char* what) {
  const auto refuse = [&](std::string_view name, const char* why) {
    throw invalid_argument("ferry::io::save_safetensors: " + path + ": the " + what + " " +
                           json_quoted(name) + " " + why);
  };
  for (const auto& each : names) {
    if (valid_utf8(each) != each.size())
      refuse(each.substr(0, valid_utf8(each)), "is not UTF-8 after these bytes");
    if (each == "__metadata__") refuse(each, "has a name that the format keeps for itself");
  }
  std::sort(names.begin(), names.end());
  const auto found = std::adjacent_find(names.begin(), names.end());
  if (found != names.end()) refuse(*found, "comes twice");
}

template <class...>
void write_safetensors(const std::string& path, const io::named_array* arrays, std::size_t count,
                       const safetensors_metadata& metadata) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(arrays[i].entry().name);
  require_safetensors_names(path, names, "array");
  names.clear();
  for (const auto& [key, value] : metadata) {
    names.push_back(key);
    require_safetensors_names(path, {value}, "metadata's value");
  }
  require_safetensors_names(path, names, "metadata's key");

  // The order of the reference implementation: large elements first, so that all are aligned; then by name.
  std::vector<const io::named_array*> order;
  for (std::size_t i = 0; i < count; ++i) order.push_back(arrays + i);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto& left = a->entry();
    const auto& right = b->entry();
    return left.type != right.type ? left.type > right.type : left.name < right.name;
  });
  std::vector<safetensors_entry> entries;
  std::uint64_t bytes = 0;
  for (const auto* each : order) {
    auto& entry = entries.emplace_back(each->entry());
    entry.begin = bytes;
    entry.end = bytes += each->entry().end;
  }
  const std::string header = make_safetensors_header(entries, metadata);
  if (header.size() - 8 > longest_safetensors_header)
    throw invalid_argument("ferry::io::save_safetensors: " + path + ": the header would have " +
                           std::to_string(header.size() - 8) + " bytes; the most are " +
                           std::to_string(longest_safetensors_header));
  atomic_file to("save_safetensors", path);
  to.content().reserve(header.size() + bytes);
  to.content().write_at(header.data(), header.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i]->write(to.content(), header.size() + entries[i].begin);
  to.commit();
}

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
template <class...>  // compiled only where it is called
void save_safetensors(const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  ferry::detail::write_safetensors(path, arrays.data(), arrays.size(), metadata);
}
template <class...>  // compiled only where it is called
void save_safetensors(const std::string& path, std::initializer_list<named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  ferry::detail::write_safetensors(path, arrays.begin(), arrays.size(), metadata);
}
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

}  // namespace io
}  // namespace ferry
