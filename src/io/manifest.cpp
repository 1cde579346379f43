// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ferry::detail {

std::uint64_t manifest_array::bytes() const {
  std::uint64_t product = element_bytes;
  for (const auto extent : extents) product *= extent;
  return product;
}

std::uint64_t manifest_array::bytes_of_chunk(std::size_t chunk) const {
  const std::uint64_t begin = chunk * chunk_bytes;
  return begin + chunk_bytes < bytes() ? chunk_bytes : bytes() - begin;
}

std::uint64_t manifest_array::chunk_count() const { return (bytes() + chunk_bytes - 1) / chunk_bytes; }

std::uint64_t manifest_array::unit_count() const { return (bytes() + unit_bytes - 1) / unit_bytes; }

std::string manifest_array::describe() const {
  std::string text = dtype + (dtype == "struct" ? " of " + std::to_string(element_bytes) + " bytes [" : " [");
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return text + "]";
}

const manifest_fact* manifest_entry::fact(std::string_view key) const { return find_named(facts, key); }

const manifest_array* manifest_entry::array(std::string_view key) const { return find_named(arrays, key); }

const manifest_entry* manifest::entry(std::string_view key) const { return find_named(entries, key); }

std::string manifest_fact::describe() const {
  if (kind == text) return "'" + words + "'";
  std::string list;
  for (const auto bits : numbers) {
    std::array<char, 32> digits{};
    std::string number;
    if (kind == real) {
      // The shortest of these that gives the number back.
      for (int precision = 6; precision <= 17; ++precision) {
        std::snprintf(digits.data(), digits.size(), "%.*g", precision, std::bit_cast<double>(bits));
        if (std::bit_cast<std::uint64_t>(std::strtod(digits.data(), nullptr)) == bits) break;
      }
      number = digits.data();
    } else {
      number = kind == whole ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
    }
    list += (list.empty() ? "" : ", ") + number;
  }
  return numbers.size() == 1 ? list : "(" + list + ")";
}

}  // namespace ferry::detail
