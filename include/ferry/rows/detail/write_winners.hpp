// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// Finds which positions of a batch win their rows, the last ones or the first ones, without sorting:
/// positions that name one row compete for one slot of a hash table.
namespace ferry::kernels {

/// A hash table with a slot for each row that a batch names: (row, position) of the winner so far. Open
/// addressing with linear probing (Knuth, The Art of Computer Programming 3, 6.4), at most half full. A slot
/// never changes its row, and the best position of a row does not depend on the order in which they compete.
struct winner_table {
  using slot = unsigned long long;
  static constexpr slot empty = ~slot{0};  ///< no row has all bits set

  slot* slots = nullptr;
  int slot_bits = 1;
  int position_bits = 0;
  bool by_row = false;  ///< a row's slot is that of its number: the table has as many slots as rows

  /// The bits of a slot's number in a table for `positions` > 0 positions.
  static int slot_bits_for(std::int64_t positions) {
    return static_cast<int>(std::bit_width(2 * static_cast<std::uint64_t>(positions) - 1));
  }
  /// True if row and position fit a slot, and a slot's number 31 bits: 32 set bits mean none.
  static bool fits(std::int64_t positions, std::int64_t rows) {
    return slot_bits_for(positions) < 32 && std::bit_width(static_cast<std::uint64_t>(positions) - 1) +
                                                    std::bit_width(static_cast<std::uint64_t>(rows)) <=
                                                64;
  }

  /// The slot of a row, after `position` has competed for it: the highest position wins, or the lowest.
  template <class Atomics, bool Last>
  KOKKOS_FUNCTION std::uint32_t compete(std::int64_t row, std::int64_t position) const {
    const slot entrant = static_cast<slot>(row) << position_bits | static_cast<slot>(position);
    const slot mask = (slot{1} << slot_bits) - 1;
    // Mixed twice: one product leaves rows at some equal distances (Fibonacci numbers) next to each other.
    slot mixed = static_cast<slot>(row) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15ull;
    for (slot index = by_row ? static_cast<slot>(row) : mixed >> (64 - slot_bits);;
         index = (index + 1) & mask) {
      slot entry = Atomics::atomic_read(slots + index);
      if (entry == empty) entry = Kokkos::atomic_compare_exchange(slots + index, empty, entrant);
      if (entry == empty) return static_cast<std::uint32_t>(index);
      if (entry >> position_bits != entrant >> position_bits) continue;
      // A position that has lost already needs no atomic: one row may have all of them.
      if (Last && entry < entrant) Atomics::atomic_raise(slots + index, entrant);
      if (!Last && entrant < entry) Atomics::atomic_lower(slots + index, entrant);
      return static_cast<std::uint32_t>(index);
    }
  }
  KOKKOS_FUNCTION std::int64_t row(std::uint32_t index) const {
    return static_cast<std::int64_t>(slots[index] >> position_bits);
  }
  KOKKOS_FUNCTION std::int64_t winner(std::uint32_t index) const {
    return static_cast<std::int64_t>(slots[index] & ((slot{1} << position_bits) - 1));
  }
};

/// One thread per slot.
struct clear_slots {
  winner_table::slot* slots;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { slots[i] = winner_table::empty; }
};

/// slot_of[p] = the slot that position p competed for, or `none` if it has no row. Fills the report as
/// resolve_indices does. One thread per position.
template <class Atomics, class Index, class Bounds, bool Last>
struct compete_for_slots {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  index_rows<Index, Bounds> source;
  winner_table table;
  std::uint32_t* slot_of;

  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    const std::int64_t row = source.row(p, true);
    slot_of[p] = row < 0 ? none : table.template compete<Atomics, Last>(row, p);
  }
};

/// Position p goes to its row if it has won it: a scatter, written as a gather from the batch.
struct winning_positions {
  winner_table table;
  const std::uint32_t* slot_of = nullptr;
  const ferry::detail::index_report* findings = nullptr;  ///< null: indices are not checked

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::uint32_t index = slot_of[p];
    if (index == ~std::uint32_t{0} || (findings != nullptr && findings->out_of_range != 0)) return -1;
    return table.winner(index) == p ? p : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t p) const { return table.row(slot_of[p]); }
};

}  // namespace ferry::kernels

/// Scatter under duplicates::last and first without sorting. A slot per row says which position wins it,
/// then the winners are written: the rows of a sort's result, in the order of the batch.
namespace ferry::detail {

/// True if the winners of these operands may be found without sorting: a device's, for rows in its own memory
/// that are moved as they are. In host memory the order of the rows decides the rate.
template <class Path, class Duplicates, class Update>
consteval bool may_write_winners() {
  using access = typename Update::access_type;
  using batch = typename Update::batch_type;
  if constexpr (!access::is_strided || is_plan<batch> || is_every_row<batch> ||
                is_host_exec<typename Update::exec_type> || !in_batch_order<Path>)
    return false;
  else
    return std::is_same_v<typename access::memory_space, device_space> &&
           (std::is_same_v<Duplicates, duplicates::last> ||
            std::is_same_v<Duplicates, duplicates::first>)&&Update::job_type::
               template replaces_by<std::remove_const_t<typename Update::values_type::value_type>>;
}

/// True if a hash table of winners can serve this batch, and is faster than a plan.
template <class Update>
bool winners_beat_a_plan(const Update& update) {
  const auto& tuning = execution_backend<typename Update::exec_type>::tuning(update.exec);
  const std::int64_t positions = update.batch.rows();
  return positions >= tuning.least_for_winners && positions <= tuning.most_for_winners &&
         update.job.table.width() != 0 && kernels::winner_table::fits(positions, update.job.table.rows());
}

/// A table of winners for `items` items that name rows of `rows`, and the number of its slots, which the
/// caller clears.
template <class Exec>
std::pair<kernels::winner_table, std::int64_t> winners_for(launch_context<Exec>& call, std::int64_t items,
                                                           std::int64_t rows) {
  const int slot_bits = kernels::winner_table::slot_bits_for(items);
  const bool by_row = rows <= std::int64_t{1} << slot_bits;
  const std::int64_t slots = by_row ? rows : std::int64_t{1} << slot_bits;
  return {{call.template scratch<kernels::winner_table::slot>(slots), slot_bits,
           static_cast<int>(std::bit_width(static_cast<std::uint64_t>(items) - 1)), by_row},
          slots};
}

template <class Path, class Bounds, class Duplicates, class Update>
ticket update_by_winners(const Update& update) {
  using exec = typename Update::exec_type;
  using index = std::remove_const_t<typename Update::batch_type::value_type>;
  constexpr bool last = std::is_same_v<Duplicates, duplicates::last>;
  const auto& table = update.job.table;
  const auto& values = update.values;
  const std::int64_t n = update.batch.rows();
  launch_context<exec> call(update.exec, update.verb);
  // As for a small batch, which is sorted.
  call.refuse_capture(
      "but small batches are sorted, which a graph can't repeat; make the plan before the capture, or use duplicates::assume_unique");
  const std::string& label = call.label(Path::name);
  call.roll_back_by(update.undo);
  [[maybe_unused]] const auto traffic = count_transfer<Path>(call, values, table, bytes_of_rows(values, n));
  static_cast<void>(prepare_job<Path>(call, label, update));
  const auto rows = rows_for_kernels<Bounds>(call, update.batch, table.rows());
  const auto [winners, slots] = winners_for(call, n, table.rows());
  auto* const slot_of = call.template scratch<std::uint32_t>(n);
  launch(call.exec(), call.label(Path::name, "clear"), slots, kernels::clear_slots{winners.slots});
  launch(call.exec(), call.label(Path::name, "claim"), n,
         kernels::compete_for_slots<execution_backend<exec>, index, Bounds, last>{rows, winners, slot_of});
  before_writing();
  launch_gather(
      call.exec(), label, values, table,
      kernels::winning_positions{winners, slot_of, Bounds::reports ? rows.report.findings : nullptr}, n);
  return call.finish(table, n, has_signed_indices(update.batch));
}

}  // namespace ferry::detail
