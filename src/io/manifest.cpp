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
  std::uint64_t all = element_bytes;
  for (const auto extent : extents) all *= extent;
  return all;
}

std::uint64_t manifest_array::bytes_of_chunk(std::size_t chunk) const {
  const std::uint64_t begin = chunk * chunk_bytes;
  return begin + chunk_bytes < bytes() ? chunk_bytes : bytes() - begin;
}

std::uint64_t manifest_array::chunk_count() const { return (bytes() + chunk_bytes - 1) / chunk_bytes; }

std::string manifest_array::describe() const {
  std::string made = dtype + (dtype == "struct" ? " of " + std::to_string(element_bytes) + " bytes [" : " [");
  for (std::size_t i = 0; i < extents.size(); ++i) made += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return made + "]";
}

const manifest_fact* manifest_entry::fact(std::string_view wanted) const { return find_named(facts, wanted); }

const manifest_array* manifest_entry::array(std::string_view wanted) const {
  return find_named(arrays, wanted);
}

const manifest_entry* manifest::entry(std::string_view wanted) const { return find_named(entries, wanted); }

std::string manifest_fact::describe() const {
  if (kind == text) return "'" + words + "'";
  std::string made;
  for (const auto bits : numbers) {
    std::array<char, 32> digits{};
    std::string one;
    if (kind == real) {
      // The shortest of these that gives the number back.
      for (int precision = 6; precision <= 17; ++precision) {
        std::snprintf(digits.data(), digits.size(), "%.*g", precision, std::bit_cast<double>(bits));
        if (std::bit_cast<std::uint64_t>(std::strtod(digits.data(), nullptr)) == bits) break;
      }
      one = digits.data();
    } else {
      one = kind == whole ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
    }
    made += (made.empty() ? "" : ", ") + one;
  }
  return numbers.size() == 1 ? made : "(" + made + ")";
}

}  // namespace ferry::detail
