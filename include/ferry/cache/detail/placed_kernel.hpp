// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/missed_items.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/row_shifts.hpp>
#include <ferry/optim/detail/update_row.hpp>
#include <ferry/optim/detail/update_whole_rows.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

/// Kernels of writing verbs, on rows in host memory and in slots. They are those of the uncached table; per
/// row their pointers are moved such that the address of row `row` is that of its slot. Everything else that
/// depends on the number of the row, as random bits, counters and factors, stays as it is. Hence equal bits.
namespace ferry::kernels {

/// The places of a batch's rows: codes of place_rule, -1 where an item has no row.
struct coded_places {
  const std::int64_t* codes;
  int row_bits;

  struct place {
    std::int64_t row;
    std::int64_t slot;  ///< -1: in host memory
  };
  KOKKOS_FORCEINLINE_FUNCTION place of(std::int64_t item) const {
    const std::int64_t code = codes[item];
    if (code < 0) return {-1, -1};
    return {code & ((std::int64_t{1} << row_bits) - 1), (code >> row_bits) - 1};
  }
};

template <class Kernel, class Shifts>
struct placed_kernel;

/// Device mapping: as apply_rows for hits, one thread per (item, tile). With lists of misses the first
/// threads stride over those. Host mapping: each thread calls apply_rows item by item.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation,
          class Shifts>
struct placed_kernel<apply_rows<Compute, Tile, Duplicates, Source, Value, Operation>, Shifts> {
  using kernel_type = apply_rows<Compute, Tile, Duplicates, Source, Value, Operation>;
  static constexpr unsigned int most_threads = kernel_type::most_threads;
  static constexpr bool takes_runs = kernel_type::takes_runs;

  kernel_type kernel;
  coded_places places;
  Shifts shifts;
  missed_items missed;

  [[nodiscard]] std::int64_t per_item() const { return kernel.per_item(); }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    constexpr std::int64_t width = missed_items::threads_per_list;
    const std::int64_t each = kernel.tiles.divisor();
    std::int64_t first = thread, end = thread + 1, list = -1;
    if (missed.items != nullptr) {
      if (thread < missed_items::threads) {
        list = thread / width;
        first = thread % width;
        end = missed.count(list) * each;
      } else {
        first = thread - missed_items::threads;
        end = first + 1;
      }
    }
    for (; first < end; first += width) {
      std::int64_t i = first, item = kernel.tiles.quotient(first);
      if (list >= 0) {
        const std::int64_t tile = first - item * each;
        item = missed.item(list, item);
        i = item * each + tile;
      }
      const auto at = places.of(item);
      if (at.row < 0 || (missed.items != nullptr && (at.slot < 0) != (list >= 0))) continue;
      kernel_type here = kernel;
      if (at.slot >= 0) shift_operation(here.operation, shifts, at.row, at.slot);
      here(i);
    }
  }

  void operator()(const detail::host_run& run) const {
    const std::int64_t all = kernel.source.items(kernel.items);
    const std::int64_t end = run.end(all);
    for (std::int64_t item = run.begin(all); item < end; ++item) {
      const auto at = places.of(item);
      if (at.row < 0) continue;
      kernel_type here = kernel;
      if (at.slot >= 0) shift_operation(here.operation, shifts, at.row, at.slot);
      here(detail::host_run{item, all});
    }
  }
};

/// A team that has one item: the kernel's loop over its items runs once.
template <class Member>
struct one_item_team : Member {
  std::int64_t item;
  std::int64_t items;

  KOKKOS_FORCEINLINE_FUNCTION one_item_team(const Member& team, std::int64_t own, std::int64_t all)
      : Member(team), item(own), items(all) {}
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t league_size() const { return items; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t league_rank() const { return item; }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t team_rank() { return 0; }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t team_size() { return 1; }
};

/// Mappings as update_whole_rows. On a device the first teams take the misses, if these are listed.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Weights, class State,
          class Schedule, class Transforms, int Fields, int RowFields, class Shifts>
struct placed_kernel<update_whole_rows<Compute, Tile, Duplicates, Source, Value, Weights, State, Schedule,
                                       Transforms, Fields, RowFields>,
                     Shifts> {
  using kernel_type = update_whole_rows<Compute, Tile, Duplicates, Source, Value, Weights, State, Schedule,
                                        Transforms, Fields, RowFields>;
  static constexpr bool takes_teams = true;

  kernel_type kernel;
  coded_places places;
  Shifts shifts;
  missed_items missed;

  [[nodiscard]] static std::int64_t per_item() { return 1; }
  [[nodiscard]] int lanes() const { return kernel.lanes(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const auto at = places.of(item);
    if (at.row >= 0) of(at)(item);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const bool listed = missed.items != nullptr;
    const std::int64_t rank = listed ? team.league_rank() - missed_items::teams : team.league_rank();
    if (rank < 0) {
      for (std::int64_t list = team.league_rank(); list < missed_items::lists; list += missed_items::teams) {
        const std::int64_t count = missed.count(list);
        for (std::int64_t i = team.team_rank(); i < count; i += team.team_size())
          one(team, missed.item(list, i));
      }
      return;
    }
    const std::int64_t teams = listed ? team.league_size() - missed_items::teams : team.league_size();
    const std::int64_t end = kernel.items * (rank + 1) / teams;
    for (std::int64_t item = kernel.items * rank / teams + team.team_rank(); item < end;
         item += team.team_size())
      if (!listed || places.of(item).slot >= 0) one(team, item);
  }

 private:
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void one(const Member& team, std::int64_t item) const {
    const auto at = places.of(item);
    if (at.row >= 0) of(at)(one_item_team<Member>(team, item, kernel.items));
  }

  KOKKOS_FORCEINLINE_FUNCTION kernel_type of(const coded_places::place& at) const {
    kernel_type here = kernel;
    if (at.slot < 0) return here;
    shift_rows(here.table, shifts.table.of(at.row, at.slot));
    for (int f = 0; f < Fields; ++f) shift_rows(here.state[f], shifts.state[f].of(at.row, at.slot));
    for (int f = 0; f < RowFields; ++f)
      shift_rows(here.row_state[f], shifts.row_state[f].of(at.row, at.slot));
    shift_counters(here.schedule, shifts.row_steps.of(at.row, at.slot));
    return here;
  }
};

/// count_rows on the places of the items.
template <class Kernel>
struct placed_count {
  Kernel kernel;
  coded_places places;
  row_shift row_steps;

  static std::int64_t bytes_each() { return Kernel::bytes_each() + std::int64_t{sizeof(std::int64_t)}; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto at = places.of(i);
    if (at.row < 0) return;
    Kernel here = kernel;
    if (at.slot >= 0) shift_counters(here.schedule, row_steps.of(at.row, at.slot));
    here(i);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The shift of an array; none for one that is not cached.
template <class T, class Space>
kernels::row_shift shift_of(const row_cache& cache, const array_ref<T, Space>& array) {
  const std::ptrdiff_t at = cache.find(reinterpret_cast<std::uintptr_t>(array.data), array.accesses);
  if (at < 0) return {};
  const cached_array& cached = cache.arrays[static_cast<std::size_t>(at)];
  return {static_cast<std::int64_t>(cached.hot) - static_cast<std::int64_t>(cached.cold), cached.stride};
}

/// State arrays of a job with one element per row.
template <class Job>
inline constexpr int row_fields_of = 0;
template <class Job>
  requires requires { Job::row_fields; }
inline constexpr int row_fields_of<Job> = Job::row_fields;

/// A job of launch_update, on the places of the batch's rows.
template <class Job>
struct placed_job : Job {
  using shifts_type = kernels::row_shifts<Job::max_fields, row_fields_of<Job>>;

  kernels::coded_places places;
  kernels::missed_items missed;
  shifts_type shifts{};

  placed_job(const Job& job, const row_cache& cache, const std::int64_t* codes,
             const kernels::missed_items& lists)
      : Job(job), places{codes, cache.row_bits()}, missed(lists) {
    shifts.table = shift_of(cache, job.table);
    if constexpr (requires { Job::row_fields; }) {
      for (int f = 0; f < job.fields; ++f)
        shifts.state[f] = shift_of(cache, job.arrays.state[static_cast<std::size_t>(f)]);
      for (int f = 0; f < Job::row_fields; ++f)
        shifts.row_state[f] = shift_of(cache, job.arrays.row_state[static_cast<std::size_t>(f)]);
      if constexpr (Job::counts_rows) shifts.row_steps = shift_of(cache, job.arrays.row_steps);
    }
  }

  template <class Exec, class Duplicates, class Tile, int Fields, class Source, class Value, class Space>
  [[nodiscard]] auto kernel(const Source& source, std::int64_t items,
                            const array_ref<Value, Space>& values) const {
    const auto made = Job::template kernel<Exec, Duplicates, Tile, Fields>(source, items, values);
    return kernels::placed_kernel<std::remove_const_t<decltype(made)>, shifts_type>{made, places, shifts,
                                                                                    missed};
  }

  template <class Exec, class Value, class Source>
  [[nodiscard]] auto counting_kernel(const Source& source) const {
    const auto made = Job::template counting_kernel<Exec, Value>(source);
    return kernels::placed_count<std::remove_const_t<decltype(made)>>{made, places, shifts.row_steps};
  }
};

}  // namespace ferry::detail
