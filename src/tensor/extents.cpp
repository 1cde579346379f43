// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/extents.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ferry::detail {

namespace {

std::string tensor_text(const std::string& label) { return "ferry::tensor '" + label + "'"; }

/// The dynamic extents of a type, or all, take their places among the fixed ones.
void fill_fixed(std::size_t* sizes, std::span<const std::size_t> fixed,
                std::span<const std::size_t> arguments, const std::string& label) {
  const auto dynamic = static_cast<std::size_t>(std::count(fixed.begin(), fixed.end(), dyn));
  if (arguments.size() != dynamic && arguments.size() != fixed.size())
    throw invalid_argument(tensor_text(label) + ": " + std::to_string(arguments.size()) +
                           " extents were given to a type of rank " + std::to_string(fixed.size()) +
                           " with " + std::to_string(dynamic) + " dynamic extents");
  std::size_t next = 0;
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    sizes[i] = fixed[i] == dyn || arguments.size() == fixed.size() ? arguments[next++] : fixed[i];
    if (fixed[i] != dyn && sizes[i] != fixed[i])
      throw invalid_argument(tensor_text(label) + ": extent " + std::to_string(i) + " is " +
                             std::to_string(sizes[i]) + " but its type fixes it at " +
                             std::to_string(fixed[i]));
  }
}

}  // namespace

std::size_t fill_sizes(std::size_t* sizes, std::span<const std::size_t> fixed,
                       std::span<const std::size_t> arguments, const std::string& label,
                       std::size_t element_bytes) {
  if (!fixed.empty()) {
    fill_fixed(sizes, fixed, arguments, label);
  } else {
    if (arguments.size() > max_rank)
      throw invalid_argument(tensor_text(label) + ": rank " + std::to_string(arguments.size()) +
                             " is above the largest, " + std::to_string(max_rank));
    std::copy(arguments.begin(), arguments.end(), sizes);
  }
  const std::size_t rank = fixed.empty() ? arguments.size() : fixed.size();
  std::size_t bytes = element_bytes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0) continue;
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) / sizes[i])
      throw invalid_argument(tensor_text(label) + " " + text_of_sizes({sizes, rank}) +
                             ": the extents' product does not fit the address space");
    bytes *= sizes[i];
  }
  return rank;
}

std::string text_of_sizes(std::span<const std::size_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : " x ") + std::to_string(sizes[i]);
  return text + "]";
}

void refuse_extent(const std::string& label, long long size) {
  throw invalid_argument(tensor_text(label) + ": extent " + std::to_string(size) + " is negative");
}

}  // namespace ferry::detail
