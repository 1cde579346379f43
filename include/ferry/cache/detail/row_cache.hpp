// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_directory.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// An array with a row per row of the table, and the memory for its cached rows. Slots have the row stride of
/// the array, and lie a multiple of it apart from the array's rows: base + place * stride addresses both.
struct cached_array {
  std::uintptr_t cold = 0;     ///< row 0 in host memory
  std::uintptr_t hot = 0;      ///< slot 0
  std::int64_t stride = 0;     ///< bytes from row to row
  std::int64_t row_bytes = 0;  ///< bytes of a row
  tensor<std::byte, device_space> memory;
  std::weak_ptr<access_tracker> accesses;  ///< expired: the array was destroyed

  template <class T, class Space>
  static cached_array of(const array_ref<T, Space>& array, std::int64_t row_bytes) {
    cached_array entry;
    entry.cold = reinterpret_cast<std::uintptr_t>(array.data);
    entry.stride = array.row_stride() * static_cast<std::int64_t>(sizeof(T));
    entry.row_bytes = row_bytes;
    entry.accesses = array.accesses;
    return entry;
  }

  /// The parts of a row begin before this many bytes of row 0.
  [[nodiscard]] std::uintptr_t part_bytes() const { return static_cast<std::uintptr_t>(row_bytes); }

  void allocate(const std::string& label, std::int64_t slots);
};

/// The cached rows for the kernels that manage them. Row numbers in `current_rows` and `next_rows` are one
/// too large: 0 is an empty slot.
struct slot_book {
  kernels::row_directory directory;
  std::int64_t* current_rows;  ///< [slots] the row of a slot
  std::int64_t* next_rows;     ///< [slots] the row it is about to get
  /// [tally_room] hits, [tally_room] misses, rows loaded, nanoseconds of exchanges, and when the work of an
  /// exchange began: in the order of the verbs, and on the instance aside.
  std::uint64_t* tallies;
  std::int64_t* entering;  ///< [slots] rows to load, from the front; equal last ones from the back
  std::int64_t* moving;    ///< [slots] those whose row in `next_rows` is new, after the choice
  std::uint64_t* moving_count;
  std::uint32_t* histogram;  ///< see choose_rows
  std::uint64_t* choice;     ///< see choose_rows
  std::uint8_t* changed;     ///< [slots] 0: as in host memory; slot_dirty or slot_dirty_again: newer
  std::uint8_t* stale;       ///< [slots] whether the row that is being loaded was written to in host memory
};

/// Verbs that write mark slots with the second one. An exchange turns that into the first one when it begins
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

  static constexpr std::int64_t bins = 4096, digits = 3, choice_words = 24;

  cache_memory() = default;
  cache_memory(const std::string& label, std::int64_t rows, std::int64_t most);
};

/// The work between two verbs, see exchange_rows.hpp.
enum class exchange_part : unsigned char {
  none,
  leaving,  ///< rows are written to host memory
  entering  ///< rows are loaded
};

/// An exchange of rows that is under way.
struct exchange_under_way {
  exchange_part part = exchange_part::none;
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

  std::int64_t interval = 0;  ///< batches between two exchanges; 0: none
  std::int64_t batches = 0;   ///< begun so far
  std::int64_t due = 1;       ///< the exchange comes after this many
  std::weak_ptr<plan_storage> latest;
  std::int64_t counted_every = 1;  ///< positions of the latest batch of which one was counted
  std::uint64_t refreshes = 0;
  exchange_under_way exchange;
  std::array<std::uint64_t, 4> earlier{};  ///< tallies from before a resize

  /// Loads slots where the device does not reach the table: see stage_rows. Null where it does.
  void (*stage)(void* context, const row_cache& cache, bool every_slot) = nullptr;

  /// An exchange is done in parts from this many batches to the next one on.
  static constexpr std::int64_t parts_from = 4;

  /// A use counts 16 in `counts`, so that halving keeps what is left of few uses.
  static constexpr std::uint32_t use = 16;

  /// The score bonus of a cached row: another row has to have two uses more to replace it. Most rows of a
  /// large cache are used less than once in an interval, so their counts differ by chance. In a simulation
  /// (540000 rows, 10 % cached, batches of 2110 or 6430 positions by Zipf's law, exponent 1.05) exchanges
  /// loaded 93 or 30 % as many rows as verbs missed. With the bonus they loaded 2 or 6 %, and hit rates were
  /// lower by half or one percent. The first exchanges give none, because the first rows were cached without
  /// a history. Nor have rows with nothing left of their count: they leave for any that was used.
  [[nodiscard]] std::uint32_t bonus() const {
    return batches / 2 >= interval ? 2 * use * static_cast<std::uint32_t>(counted_every) - 1 : 0;
  }

  [[nodiscard]] const std::shared_ptr<access_tracker>& accesses() const { return memory.words.accesses(); }

  /// Bits of a row number, in numbers that have a slot, too.
  [[nodiscard]] int row_bits() const {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows)));
  }

  /// Bytes of the longest rows that gather_found moves. With all rows cached, it took 0.101 ms for rows of 128
  /// bytes where two kernels took 0.108; for rows of 512 bytes, 0.299 and 0.291 (1048576 rows, H200).
  static constexpr std::int64_t longest_found = 256;
  /// True if a device's gather by indices looks rows up in the kernel that moves them. Callers hold `guard`.
  [[nodiscard]] bool finds_while_gathering(std::int64_t bytes) const {
    return interval == 0 && bytes <= longest_found;
  }

  /// The place in `arrays` of the array that the rows which begin at `first` are, or are parts of; or -1.
  [[nodiscard]] std::ptrdiff_t find(std::uintptr_t first,
                                    const std::shared_ptr<access_tracker>& tracker) const;

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

}  // namespace ferry::detail
