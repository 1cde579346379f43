// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Kernels of writing verbs on rows that do not lie at base + row * stride. They are the kernels of an
/// array; per row their pointers are moved such that base + row * stride is the row's address. Everything
/// else that depends on the number of the row, as random bits, counters and factors, stays as it is. Hence
/// equal bits. A device's *addresser* says where a row is:
///
///   find(source, item)       the location of the item's row, with a member `row`, -1 if the item has none
///   moves(location)             whether the row lies elsewhere than at base + row * stride
///   table_shift(location)       how many bytes farther it lies; so do
///   array_shift(k, location)    the rows of array k that the job's for_each_row_array visits, and
///   counter_shift(location)     their counters
///   lists_far_items          a device's kernel takes some items from lists `far_items`: is_far(location)
///
/// visit_rows(visit) of an operation, or of a kernel of whole rows, calls visit(pointer) for the pointers to
/// its table and to these arrays, in this order.
namespace ferry::kernels {

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void shift_rows(T*& rows, std::int64_t bytes) {
  rows = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(rows) + static_cast<std::uintptr_t>(bytes));
}

/// The counters of rows, if the step has any.
template <class Schedule>
KOKKOS_FORCEINLINE_FUNCTION void shift_counters(Schedule& schedule, std::int64_t bytes) {
  if constexpr (Schedule::counts_rows) shift_rows(schedule.counts, bytes);
}

/// Moves the pointers of an operation or a kernel to the location of a row.
template <class Operation, class Addresser, class Location>
KOKKOS_FORCEINLINE_FUNCTION void address(Operation& operation, const Addresser& rows,
                                         const Location& location) {
  int number = -1;
  operation.visit_rows([&](auto*& pointer) {
    shift_rows(pointer, number < 0 ? rows.table_shift(location) : rows.array_shift(number, location));
    ++number;
  });
  if constexpr (requires { operation.operation.schedule; })
    shift_counters(operation.operation.schedule, rows.counter_shift(location));
  else if constexpr (requires { operation.schedule; })
    shift_counters(operation.schedule, rows.counter_shift(location));
}

/// The addresser of a table whose state lies in arrays.
struct addressed_table {
  static constexpr bool lists_far_items = false;

  template <class Location>
  KOKKOS_FORCEINLINE_FUNCTION static bool moves(const Location&) {
    return true;
  }
  template <class Location>
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t array_shift(int, const Location&) {
    return 0;
  }
  template <class Location>
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t counter_shift(const Location&) {
    return 0;
  }
};

/// apply_rows. Device mapping: as there, one thread per (item, tile). With lists of far items the first
/// threads stride over those. Host mapping: each thread calls the kernel item by item.
template <class Kernel, class Addresser>
struct addressed_kernel {
  static constexpr unsigned int most_threads = Kernel::most_threads;
  static constexpr bool takes_runs = Kernel::takes_runs;

  Kernel kernel;
  Addresser rows;

  [[nodiscard]] std::int64_t per_item() const { return kernel.per_item(); }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t tiles = kernel.tiles.divisor();
    if constexpr (Addresser::lists_far_items) {
      using lists = typename Addresser::lists_type;
      constexpr std::int64_t width = lists::threads_per_list;
      const bool listed = rows.far_items.items != nullptr;
      std::int64_t first = thread, end = thread + 1, list = -1;
      if (listed) {
        if (thread < lists::threads) {
          list = thread / width;
          first = thread % width;
          end = rows.far_items.count(list) * tiles;
        } else {
          first = thread - lists::threads;
          end = first + 1;
        }
      }
      for (; first < end; first += width) {
        std::int64_t i = first, item = kernel.tiles.quotient(first);
        if (list >= 0) {
          const std::int64_t tile = first - item * tiles;
          item = rows.far_items.item(list, item);
          i = item * tiles + tile;
        }
        const auto location = rows.find(kernel.source, item);
        if (location.row < 0 || (listed && rows.is_far(location) != (list >= 0))) continue;
        run(location, i);
      }
    } else {
      const auto location = rows.find(kernel.source, kernel.tiles.quotient(thread));
      if (location.row >= 0) run(location, thread);
    }
  }

  void operator()(const detail::host_run& run_of_items) const {
    const std::int64_t items = kernel.source.items(kernel.items);
    const std::int64_t end = run_of_items.end(items);
    for (std::int64_t item = run_of_items.begin(items); item < end; ++item) {
      const auto location = rows.find(kernel.source, item);
      if (location.row >= 0) run(location, detail::host_run{item, items});
    }
  }

 private:
  template <class Location, class Work>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Location& location, const Work& work) const {
    Kernel moved = kernel;
    if (rows.moves(location)) address(moved.operation, rows, location);
    moved(work);
  }
};

/// Kernels whose teams take whole rows. On a device the first teams take the far items, if these are listed.
template <class Kernel, class Addresser>
  requires(Kernel::takes_teams)
struct addressed_kernel<Kernel, Addresser> {
  static constexpr bool takes_teams = true;

  Kernel kernel;
  Addresser rows;

  [[nodiscard]] static std::int64_t per_item() { return 1; }
  [[nodiscard]] int lanes() const { return kernel.lanes(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const auto location = rows.find(kernel.source, item);
    if (location.row >= 0) moved_to(location)(item);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    bool listed = false;
    std::int64_t rank = team.league_rank(), teams = team.league_size();
    if constexpr (Addresser::lists_far_items) {
      using lists = typename Addresser::lists_type;
      listed = rows.far_items.items != nullptr;
      if (listed) rank -= lists::teams;
      if (rank < 0) {
        for (std::int64_t list = team.league_rank(); list < lists::lists; list += lists::teams) {
          const std::int64_t count = rows.far_items.count(list);
          for (std::int64_t i = team.team_rank(); i < count; i += team.team_size())
            run(team, rows.far_items.item(list, i), false);
        }
        return;
      }
      if (listed) teams -= lists::teams;
    }
    const std::int64_t end = kernel.items * (rank + 1) / teams;
    for (std::int64_t item = kernel.items * rank / teams + team.team_rank(); item < end;
         item += team.team_size())
      run(team, item, listed);
  }

 private:
  /// The item, unless its row is to be near and is not.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Member& team, std::int64_t item, bool skips_lists) const {
    const auto location = rows.find(kernel.source, item);
    if constexpr (Addresser::lists_far_items)
      if (skips_lists && rows.is_far(location)) return;
    if (location.row >= 0) moved_to(location).update_item(team, item);
  }

  template <class Location>
  KOKKOS_FORCEINLINE_FUNCTION Kernel moved_to(const Location& location) const {
    Kernel moved = kernel;
    if (rows.moves(location)) address(moved, rows, location);
    return moved;
  }
};

/// A kernel that counts the steps of rows.
template <class Kernel, class Addresser>
struct addressed_count {
  static constexpr unsigned int most_threads = Kernel::most_threads;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = Kernel::blocks_at_once;

  Kernel kernel;
  Addresser rows;

  static std::int64_t bytes_each() { return Kernel::bytes_each() + std::int64_t{sizeof(std::int64_t)}; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const auto location = rows.find(kernel.source, item);
    if (location.row < 0) return;
    Kernel moved = kernel;
    if (rows.moves(location)) shift_counters(moved.operation.schedule, rows.counter_shift(location));
    moved(item);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// A job of launch_update whose kernels take an addresser.
template <class Job, class Addresser>
struct addressed_job : Job {
  Addresser rows;

  addressed_job(const Job& job, const Addresser& addresser) : Job(job), rows(addresser) {}

  template <class Exec, class Duplicates, class Tile, int Fields, class Source, class Values>
  [[nodiscard]] auto kernel(const Source& source, std::int64_t items, const Values& values) const {
    const auto plain = Job::template kernel<Exec, Duplicates, Tile, Fields>(source, items, values);
    return kernels::addressed_kernel<std::remove_const_t<decltype(plain)>, Addresser>{plain, rows};
  }

  template <class Exec, class Value, class Source>
  [[nodiscard]] auto counting_kernel(const Source& source) const {
    const auto plain = Job::template counting_kernel<Exec, Value>(source);
    return kernels::addressed_count<std::remove_const_t<decltype(plain)>, Addresser>{plain, rows};
  }
};

}  // namespace ferry::detail
