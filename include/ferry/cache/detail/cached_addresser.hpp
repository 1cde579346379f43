// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/missed_items.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/rows/detail/addressed_rows.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The addresser of kernels that write to cached tables: a row lies in host memory or in a slot.
namespace ferry::kernels {

/// The places of a batch's rows: codes of place_rule, -1 if an item has no row.
struct coded_places {
  const std::int64_t* codes;
  int row_bits;

  struct place {
    std::int64_t row;
    std::int64_t slot;  ///< -1: in host memory
  };
  KOKKOS_FORCEINLINE_FUNCTION place find(std::int64_t item) const {
    const std::int64_t code = codes[item];
    if (code < 0) return {-1, -1};
    return {code & ((std::int64_t{1} << row_bits) - 1), (code >> row_bits) - 1};
  }
};

/// From a row of an array in host memory to its slot, in bytes.
struct slot_shift {
  std::int64_t base = 0;    ///< from row 0 to slot 0
  std::int64_t stride = 0;  ///< 0 for an array that is not cached

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t bytes(const coded_places::place& place) const {
    return base + (place.slot - place.row) * stride;
  }
};

/// Addresser of a job: its template arguments count the state arrays of whole rows, and those of one element
/// per row.
template <int Fields, int RowFields>
struct cached_addresser {
  using lists_type = missed_items;
  static constexpr bool lists_far_items = true;

  coded_places places;
  slot_shift table;
  slot_shift state[Fields == 0 ? 1 : Fields];
  slot_shift row_state[RowFields == 0 ? 1 : RowFields];
  slot_shift row_steps;
  slot_shift scales;       ///< of a table of codes
  missed_items far_items;  ///< items whose rows are in host memory

  template <class Source>
  KOKKOS_FORCEINLINE_FUNCTION coded_places::place find(const Source&, std::int64_t item) const {
    return places.find(item);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool moves(const coded_places::place& place) { return place.slot >= 0; }
  KOKKOS_FORCEINLINE_FUNCTION static bool is_far(const coded_places::place& place) { return place.slot < 0; }

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t table_shift(const coded_places::place& place) const {
    return table.bytes(place);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t state_shift(int f, const coded_places::place& place) const {
    return state[f].bytes(place);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_state_shift(int f, const coded_places::place& place) const {
    return row_state[f].bytes(place);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t counter_shift(const coded_places::place& place) const {
    return row_steps.bytes(place);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t scale_shift(const coded_places::place& place) const {
    return scales.bytes(place);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The shift of an array; none for one that is not cached.
template <class T, class Space>
kernels::slot_shift shift_of(const row_cache& cache, const array_ref<T, Space>& array) {
  const std::ptrdiff_t place = cache.find(reinterpret_cast<std::uintptr_t>(array.data), array.accesses);
  if (place < 0) return {};
  const cached_array& cached = cache.arrays[static_cast<std::size_t>(place)];
  return {static_cast<std::int64_t>(cached.hot) - static_cast<std::int64_t>(cached.cold), cached.stride};
}

/// Calls visit(array, shift) for each state array of a job: `shifts` has a shift for each.
template <class Job, class Shifts, class Visit>
void visit_state([[maybe_unused]] const Job& job, [[maybe_unused]] Shifts& shifts,
                 [[maybe_unused]] const Visit& visit) {
  if constexpr (requires { Job::row_fields; }) {
    for (int f = 0; f < job.fields; ++f)
      visit(job.arrays.state[static_cast<std::size_t>(f)], shifts.state[f]);
    for (int f = 0; f < Job::row_fields; ++f)
      visit(job.arrays.row_state[static_cast<std::size_t>(f)], shifts.row_state[f]);
    if constexpr (Job::counts_rows) visit(job.arrays.row_steps, shifts.row_steps);
  }
}

/// State arrays of a job with one element per row.
template <class Job>
inline constexpr int row_fields_of = 0;
template <class Job>
  requires requires { Job::row_fields; }
inline constexpr int row_fields_of<Job> = Job::row_fields;

template <class Job>
using cached_addresser_for = kernels::cached_addresser<Job::max_fields, row_fields_of<Job>>;

/// The addresser of a job on the places of the batch's rows.
template <class Job>
cached_addresser_for<Job> address_slots(const row_cache& cache, const Job& job, const std::int64_t* codes,
                                        const kernels::missed_items& far_items) {
  cached_addresser_for<Job> rows{};
  rows.places = {codes, cache.row_bits()};
  rows.far_items = far_items;
  rows.table = shift_of(cache, job.table);
  if constexpr (has_weight_scales<std::remove_cvref_t<decltype(job.table)>>)
    rows.scales = shift_of(cache, job.table.scales);
  visit_state(job, rows,
              [&](const auto& array, kernels::slot_shift& shift) { shift = shift_of(cache, array); });
  return rows;
}

}  // namespace ferry::detail
