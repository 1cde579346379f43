// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// The slot of a row that is being loaded, as find() returns it, and back.
KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t loading(std::int64_t slot) { return -slot - 2; }

/// The bit in entries of rows that are being loaded.
inline constexpr std::uint32_t loading_bit = std::uint32_t{1} << 31;

/// Which slot of device memory has a row: a number for each row of the table, the slot + 1, or 0 for none. A
/// lookup reads one sector. No two threads change the entry of one row in one kernel.
struct row_directory {
  std::uint32_t* slot_of;

  /// The slot; negative if the row is to be read from and written to host memory: -1, or loading(slot) while
  /// the row is being loaded into that slot.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t find(std::int64_t row) const {
    const std::uint32_t entry = slot_of[row];
    const std::int64_t slot = static_cast<std::int64_t>(entry & ~loading_bit) - 1;
    return (entry & loading_bit) == 0 ? slot : loading(slot);
  }
  /// True if a row with this word in slot_of is in its slot.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_cached(std::uint32_t entry) {
    return entry != 0 && (entry & loading_bit) == 0;
  }
  /// The row is about to be loaded into that slot.
  KOKKOS_FORCEINLINE_FUNCTION void announce(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1) | loading_bit;
  }
  /// The row is in that slot from now on.
  KOKKOS_FORCEINLINE_FUNCTION void insert(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void erase(std::int64_t row) const { slot_of[row] = 0; }
};

template <class Number>
struct clear_numbers {
  Number* numbers;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { numbers[i] = 0; }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// An array with a row per row of the table, and the memory for its cached rows. Slots have the row stride of
/// the array, and lie a multiple of it apart from the array's rows: base + index * stride addresses both.
struct cached_array {
  std::uintptr_t cold = 0;     ///< row 0 in host memory
  std::uintptr_t hot = 0;      ///< slot 0
  std::int64_t stride = 0;     ///< bytes from row to row
  std::int64_t row_bytes = 0;  ///< bytes of a row
  tensor<std::byte, device_space> memory;
  std::weak_ptr<access_tracker> accesses;  ///< expired: the array was destroyed

  cached_array() = default;
  cached_array(const untyped_array& array, std::int64_t bytes_of_row);

  void allocate(const std::string& label, std::int64_t slots);
};

/// The cached rows for the kernels that manage them. Row numbers in `current_rows` and `next_rows` are one
/// too large: 0 is an empty slot.
struct slot_book {
  kernels::row_directory directory;
  std::int64_t* current_rows;  ///< [slots] the row of a slot
  std::int64_t* next_rows;     ///< [slots] the row it is about to get
  /// [tally_room] hits, [tally_room] misses, rows loaded, nanoseconds of refreshes, and when the work of an
  /// refresh began: in the order of the verbs, and on the instance aside.
  std::uint64_t* tallies;
  std::int64_t* entering;  ///< [slots] rows to load, from the front; equal last ones from the back
  std::int64_t* moving;    ///< [slots] those whose row in `next_rows` is new, after the choice
  std::uint64_t* moving_count;
  std::uint32_t* histogram;  ///< see choose_rows
  std::uint64_t* choice;     ///< see choose_rows
  std::uint8_t* changed;     ///< [slots] 0: as in host memory; slot_dirty or slot_dirty_again: newer
  std::uint8_t* stale;       ///< [slots] whether the row that is being loaded was written to in host memory
};

/// The order of use of cache::lru, of which each group has one.
struct use_book {
  std::int32_t* order;       ///< [groups][group_slots] slots of the group, the one used least recently first
  std::int32_t* free_slots;  ///< [groups][group_slots] the slots that a batch gives to new rows
  std::uint64_t* marks;      ///< [slots] the number of the latest batch that used the slot, and its position
  std::uint64_t* batches;    ///< [groups] the number of the latest batch
  std::int64_t group_slots;
  std::int64_t group_rows;
  std::int64_t groups;  ///< 0: another policy chooses the rows
};

/// Verbs that write mark slots with the second one. A refresh turns that into the first one when it begins
/// to write rows back, and so finds those that verbs change in the meantime.
inline constexpr std::uint8_t slot_dirty = 1, slot_dirty_again = 2;

/// Counters of hits, and of misses, so that threads of a device do not all add to one. The threads of a warp
/// add to neighbouring ones.
inline constexpr int tally_room = 512;

/// Memory for a number of slots: the book, and the cached rows of every array.
struct cache_memory {
  std::int64_t slots = 0;
  tensor<std::uint64_t, device_space> words;
  slot_book book{};
  use_book uses{};

  static constexpr std::int64_t bins = 4096, digits = 3, choice_words = 24;

  cache_memory() = default;
  cache_memory(const std::string& label, std::int64_t rows, std::int64_t most, std::int64_t groups);
};

/// The work between two verbs, see src/cache/refresh_rows.cpp.
enum class refresh_part : unsigned char {
  none,
  leaving,  ///< rows are written to host memory
  entering  ///< rows are loaded
};

/// A refresh of rows that is under way.
struct refresh_under_way {
  refresh_part part = refresh_part::none;
  std::int64_t lag = 0;          ///< batches that a part takes
  std::int64_t due = 0;          ///< the part ends after this many batches in all
  event_handle completion;       ///< the end of the part; null if the instance's own order suffices
  std::shared_ptr<void> stream;  ///< the instance that it is on
};

/// The cached rows of a table and of optimizer states, type-erased. Verbs hold `guard` while they enqueue.
/// All of its device memory has one record of accesses, that of `memory.words`, and every verb writes to it:
/// verbs on different instances run one after the other.
struct row_cache {
  std::mutex guard;
  std::string label;
  std::weak_ptr<access_tracker> table;  ///< that of arrays.front(), never changed: read without `guard`
  std::int64_t rows = 0;
  cache_memory memory;
  tensor<std::uint32_t, device_space> counts;  ///< [rows] uses of a row in sixteenths; empty: not counted
  std::vector<cached_array> arrays;            ///< of the table, then of states
  std::int64_t row_bytes = 0;                  ///< of the table's arrays
  bool changed = false;                        ///< true if slots may be newer than host memory
  bool captured = false;                       ///< true if a graph may write to slots at any time
  bool captured_moves = false;                 ///< true if a graph moves the rows of the arrays above
  bool writes_through = false;                 ///< verbs that write also write to host memory

  std::int64_t interval = 0;  ///< batches between two refreshes; 0: none
  std::int64_t batches = 0;   ///< begun so far
  std::int64_t due = 1;       ///< the refresh comes after this many
  std::weak_ptr<plan_storage> latest;
  std::int64_t counted_every = 1;  ///< positions of the latest batch of which one was counted
  std::uint64_t refreshes = 0;
  refresh_under_way refresh;
  std::array<std::uint64_t, 4> earlier{};  ///< tallies from before a resize

  /// Loads slots where the device does not reach the table: see stage_rows. Null where it does.
  void (*stage)(void* context, const row_cache& cache, bool every_slot) = nullptr;

  /// A refresh is done in parts from this many batches to the next one on.
  static constexpr std::int64_t parts_from = 4;

  /// A use counts 16 in `counts`, so that halving keeps what is left of few uses.
  static constexpr std::uint32_t use = 16;

  /// The score bonus of a cached row: another row has to have two uses more to replace it. Most rows of a
  /// large cache are used less than once in an interval, so their counts differ by chance. In a simulation
  /// (540000 rows, 10 % cached, batches of 2110 or 6430 positions by Zipf's law, exponent 1.05) refreshes
  /// loaded 93 or 30 % as many rows as verbs missed. With the bonus they loaded 2 or 6 %, and hit rates were
  /// lower by half or one percent. The first refreshes give none, because the first rows were cached without
  /// a history. Nor have rows with nothing left of their count: they leave for any that was used.
  [[nodiscard]] std::uint32_t bonus() const {
    return batches / 2 >= interval ? 2 * use * static_cast<std::uint32_t>(counted_every) - 1 : 0;
  }

  [[nodiscard]] const std::shared_ptr<access_tracker>& accesses() const { return memory.words.accesses(); }

  /// Bits of a row number, in numbers that have a slot, too.
  [[nodiscard]] int row_bits() const {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows)));
  }

  /// The cached array that an array is, or is a part of; null if there is none.
  [[nodiscard]] const cached_array* find(const untyped_array& array) const;

  /// True if the verb begins a batch: verbs with one plan, one after the other, are of one batch.
  [[nodiscard]] bool begins_batch(const std::shared_ptr<plan_storage>& plan);

  void hold(row_hold how) const noexcept;

  void open() const noexcept;

  /// Drops the arrays of states that were destroyed.
  void drop_lost();
};

/// An array without elements that has a record of accesses, for launch_context.
inline array_ref<std::byte, device_space> tracked(std::shared_ptr<access_tracker> accesses) {
  array_ref<std::byte, device_space> array;
  array.accesses = std::move(accesses);
  return array;
}

/// Sole use of a row cache by a verb that is being enqueued. In its lifetime the backing arrays can
/// be accessed by this thread; else verbs on them are refused where they would miss changes.
class cache_use {
 public:
  /// Throws invalid_argument if the table was destroyed.
  cache_use(row_cache& cache, const char* verb);
  cache_use(const cache_use&) = delete;
  cache_use& operator=(const cache_use&) = delete;
  ~cache_use();

 private:
  std::lock_guard<std::mutex> lock_;
  row_cache& cache_;
};

/// require_foreign for one operand, an array.
void require_foreign_array(const char* verb, const row_cache& cache, const untyped_array& operand);

/// Throws invalid_argument if one of the other operands of a verb on the cached table is an array of the
/// cache: the verb would miss, or undo, changes in device memory. Plans, numbers of indices and what is
/// left out have no such memory. The caller holds a cache_use.
template <class... Operands>
void require_foreign(const char* verb, const row_cache& cache, const Operands&... operands) {
  [[maybe_unused]] const auto check = [&](const auto& operand) {
    if constexpr (std::is_convertible_v<decltype(operand), untyped_array>)
      require_foreign_array(verb, cache, operand);
    else if constexpr (requires { make_ref(operand); })
      require_foreign_array(verb, cache, make_ref(operand));
  };
  (check(operands), ...);
}

// The work of verbs on a row cache before and after their own kernels.

/// The later work of this call reads and writes slots; `host`: also all rows in host memory.
template <ExecutionSpace Exec>
void use_slots(launch_context<Exec>& call, const row_cache& cache, bool host);

/// Gives the slots the rows in `next_rows`, at once.
template <ExecutionSpace Exec>
void refresh_now(launch_context<Exec>& call, row_cache& cache);

/// Writes all changes to host memory. The cached rows stay. No refresh is under way afterwards.
template <ExecutionSpace Exec>
void flush_rows(launch_context<Exec>& call, row_cache& cache);

/// Reads all cached rows from host memory again.
template <ExecutionSpace Exec>
void reload_rows(launch_context<Exec>& call, row_cache& cache);

/// Begins a verb on rows: a part of a refresh comes first if one is due. `plan`: that of the batch, or
/// null. Returns whether the batch is to be counted.
template <ExecutionSpace Exec>
bool begin_batch(launch_context<Exec>& call, row_cache& cache, const std::shared_ptr<plan_storage>& plan,
                 bool writes);

/// Moves the rows of the slots in book.moving: those that leave from changed slots to host memory, then those
/// that enter. Each entry is twice the slot, plus one if the slot has changed.
template <ExecutionSpace Exec>
void swap_listed_rows(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                      std::int64_t most_blocks);

/// Empties a group of cache::lru. Throws invalid_argument if there is none of that number.
template <ExecutionSpace Exec>
void empty_group(launch_context<Exec>& call, row_cache& cache, std::int64_t group);

/// Caches an array with a row per row of the table, too, if it is not cached yet: its cached rows get memory
/// and are loaded. Throws bad_alloc or budget_exceeded before it changes anything.
template <ExecutionSpace Exec>
void add_backing_array(launch_context<Exec>& call, row_cache& cache, const untyped_array& array);

}  // namespace ferry::detail
