// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/library.hpp>

#include <bit>
#include <cstddef>
#include <string>

namespace ferry::detail {

static_assert(std::endian::native == std::endian::little,
              "ferry: files are written as the memory is, and their formats are little-endian.");

/// The meaning of the bytes of an element. An e2m1 is a pair of 4-bit numbers; `foreign` are 8-bit numbers in
/// a format that ferry does not have.
enum class dtype_kind : unsigned char {
  boolean,
  integer,
  unsigned_integer,
  real,
  brain,
  complex,
  e4m3,
  e5m2,
  e8m0,
  e2m1,
  foreign,
  record
};

/// The type of the elements of an array in a file.
struct dtype {
  dtype_kind kind = dtype_kind::record;
  std::size_t bytes = 0;

  bool operator==(const dtype&) const = default;

  /// NumPy's name: "float32", "bfloat16", "float8_e4m3fn"; "records of 12 bytes" for structs.
  [[nodiscard]] std::string name() const;
};

}  // namespace ferry::detail
