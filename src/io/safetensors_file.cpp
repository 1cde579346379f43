// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/safetensors_file.hpp>

#include "json.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/safetensors_dtype.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::io {

safetensors_file::safetensors_file(const std::string& path)
    : source_(ferry::detail::file::open_to_read("open_safetensors", path)),
      header_(ferry::detail::read_safetensors_header(source_)) {}

std::vector<std::string> safetensors_file::names() const {
  std::vector<std::string> names;
  for (const auto& entry : header_.entries) names.push_back(entry.name);
  return names;
}

bool safetensors_file::contains(std::string_view name) const { return find(name) != nullptr; }

const std::vector<std::size_t>& safetensors_file::shape(std::string_view name) const {
  return entry_of(name).shape;
}

std::string_view safetensors_file::dtype(std::string_view name) const { return entry_of(name).type_name(); }

const ferry::detail::safetensors_entry* safetensors_file::find(std::string_view name) const {
  const auto& entries = header_.entries;
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& candidate) { return candidate.name == name; });
  return entry == entries.end() ? nullptr : &*entry;
}

const ferry::detail::safetensors_entry& safetensors_file::entry_of(std::string_view name) const {
  if (const auto* entry = find(name)) return *entry;
  constexpr std::size_t longest = 1000;
  const auto& entries = header_.entries;
  std::string list;
  std::size_t listed = 0;
  for (; listed < entries.size() && list.size() < longest; ++listed)
    list += (listed == 0 ? "" : ", ") + ferry::detail::json_quoted(entries[listed].name.substr(0, longest));
  if (listed < entries.size()) list += " and " + std::to_string(entries.size() - listed) + " more";
  throw out_of_range("ferry::io::safetensors_file: " + path() + ": there is no tensor " +
                     ferry::detail::json_quoted(name) + "; the file has " + (listed == 0 ? "none" : list));
}

ferry::detail::stored_array safetensors_file::stored(const ferry::detail::safetensors_entry& entry) const {
  if (entry.shape.size() > max_rank)
    throw invalid_argument("ferry::io::safetensors_file: " + path() + ": the tensor " +
                           ferry::detail::json_quoted(entry.name) + " has rank " +
                           std::to_string(entry.shape.size()) + ", above the largest, " +
                           std::to_string(max_rank));
  if (!entry.has_known_type())
    throw invalid_argument("ferry::io::safetensors_file: " + path() + ": the tensor " +
                           ferry::detail::json_quoted(entry.name) + " has elements of the type " +
                           ferry::detail::json_quoted(entry.unknown_type.substr(0, 40)) +
                           ", which is unknown");
  const auto& type = ferry::detail::safetensors_dtypes[entry.type];
  ferry::detail::stored_array array;
  array.name = ferry::detail::json_quoted(entry.name);
  array.elements = {type.kind, type.bits * type.elements() / 8};
  array.type_text = type.name;
  array.rank = std::max<std::size_t>(1, entry.shape.size());
  array.extents[0] = 1;
  std::copy(entry.shape.begin(), entry.shape.end(), array.extents.begin());
  array.offset = header_.bytes + entry.begin;
  auto& width = array.extents[array.rank - 1];
  if (width % type.elements() != 0)
    throw invalid_argument("ferry::io::safetensors_file: " + path() + ": the tensor " + array.name +
                           " has rows of " + std::to_string(width) +
                           " numbers of 4 bits, which are no pairs");
  width /= type.elements();
  return array;
}

ferry::detail::stored_array safetensors_file::part_of(ferry::detail::stored_array whole, std::size_t begin,
                                                      std::size_t end) {
  std::uint64_t row_bytes = whole.elements.bytes;
  for (std::size_t i = 1; i < whole.rank; ++i) row_bytes *= whole.extents[i];
  whole.extents[0] = end - begin;
  whole.offset += begin * row_bytes;
  return whole;
}

void safetensors_file::refuse_rows(const ferry::detail::stored_array& whole, const std::string& begin,
                                   const std::string& end) const {
  throw out_of_range("ferry::io::safetensors_file: " + path() + ": the tensor " + whole.name + " has " +
                     std::to_string(whole.extents[0]) + " rows, and rows " + begin + " to " + end +
                     " do not lie inside of them");
}

}  // namespace ferry::io
