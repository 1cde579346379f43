// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The index loaders of gather_unique, see row_source.hpp.
namespace ferry::kernels {

/// Item i is the row of segment i, which goes to the first position that names it.
struct segment_heads {
  const std::int64_t* unique_rows = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  const std::int64_t* unique_count = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t segment, bool) const {
    return segment < *unique_count ? unique_rows[segment] : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t segment) const { return order[segment_begin[segment]]; }
};

/// Item p is position p, which gets the row of its segment's first position, unless it is that position.
struct other_places {
  segment_heads heads;
  const std::int64_t* inverse = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::int64_t segment = inverse[p];
    if (segment < 0) return -1;
    const std::int64_t head = heads.position(segment);
    return head == p ? -1 : head;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t p) { return p; }
};

}  // namespace ferry::kernels
