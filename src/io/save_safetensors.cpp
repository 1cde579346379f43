// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/save_safetensors.hpp>

#include "json.hpp"

#include <ferry/error.hpp>
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

namespace {

/// Throws invalid_argument for names that a header can't hold.
void require_safetensors_names(const std::string& path, std::vector<std::string_view> names,
                               const char* kind) {
  const auto refuse = [&](std::string_view name, const char* why) {
    throw invalid_argument("ferry::io::save_safetensors: " + path + ": the " + kind + " " +
                           json_quoted(name) + " " + why);
  };
  for (const auto& name : names) {
    if (valid_utf8(name) != name.size())
      refuse(name.substr(0, valid_utf8(name)), "is not UTF-8 after these bytes");
    if (name == "__metadata__") refuse(name, "has a name that the format keeps for itself");
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse(*twice, "comes twice");
}

}  // namespace

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
  for (const auto* array : order) {
    auto& entry = entries.emplace_back(array->entry());
    entry.begin = bytes;
    entry.end = bytes += array->entry().end;
  }
  const std::string header = make_safetensors_header(entries, metadata);
  if (header.size() - 8 > longest_safetensors_header)
    throw invalid_argument("ferry::io::save_safetensors: " + path + ": the header would have " +
                           std::to_string(header.size() - 8) + " bytes; the most are " +
                           std::to_string(longest_safetensors_header));
  atomic_file target("save_safetensors", path);
  target.content().reserve(header.size() + bytes);
  target.content().write_at(header.data(), header.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i]->write(target.content(), header.size() + entries[i].begin);
  target.commit();
}

}  // namespace detail

namespace io {

void save_safetensors(const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  ferry::detail::write_safetensors(path, arrays.data(), arrays.size(), metadata);
}

void save_safetensors(const std::string& path, std::initializer_list<named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  ferry::detail::write_safetensors(path, arrays.begin(), arrays.size(), metadata);
}

}  // namespace io
}  // namespace ferry
