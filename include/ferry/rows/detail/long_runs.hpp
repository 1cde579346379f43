// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ferry::detail {

/// True if DMA on memory of this space is asynchronous and runs at the link's rate. It does neither on memory
/// that the device maps with large pages, nor on pages that the system may move.
template <class Space>
inline constexpr bool is_page_locked = std::is_same_v<Space, pinned_space>;

/// Finds the runs of neighbouring table rows in a list of rows that are long enough for a DMA transfer of
/// their own. Such a transfer accesses the table directly instead of through the ring.
class long_runs {
 public:
  /// No piece is long enough.
  long_runs() = default;
  /// `table` and `batch` have rows of the same size. `batch` has a row for each item of the list `rows` (-1:
  /// none).
  template <class Exec, class T, class TableSpace, class V, class BatchSpace>
  static long_runs between(const Exec& exec, const std::int64_t* rows, const array_ref<T, TableSpace>& table,
                           const array_ref<V, BatchSpace>& batch) {
    const std::int64_t row_bytes = batch.width() * static_cast<std::int64_t>(sizeof(V));
    const std::int64_t least_bytes = execution_backend<Exec>::tuning(exec).dma_run_bytes;
    const bool dense = table.row_stride() == table.width() && batch.row_stride() == batch.width();
    if (row_bytes <= 0 || (!dense && row_bytes < least_bytes)) return {};
    return {rows, (least_bytes + row_bytes - 1) / row_bytes, dense};
  }
  /// Runs of at least `least` rows. Where the rows are not `dense`, that is contiguous, each row is a run of
  /// its own.
  long_runs(const std::int64_t* rows, std::int64_t least, bool dense)
      : rows_(rows), least_(least), most_(dense ? std::numeric_limits<std::int64_t>::max() : 1) {}

  /// True if each row is a run, so that none goes through the ring.
  [[nodiscard]] bool is_every_row() const { return least_ == 1; }

  /// Cuts items [first, first + count) into runs and the rest between them: on_run(begin, length) and
  /// on_rest(begin, length), in the order of the items.
  ///
  /// Looks at every few items only: a run of `least` items holds a whole window of half that length, wherever
  /// it begins, and the first and last row of a window tell whether it may be part of a run.
  template <class OnRun, class OnRest>
  void split(std::int64_t first, std::int64_t count, const OnRun& on_run, const OnRest& on_rest) const {
    const std::int64_t end = first + count;
    std::int64_t rest = first;
    const std::int64_t window = (least_ + 1) / 2;
    for (std::int64_t position = first; least_ > 0 && position + window <= end;) {
      std::int64_t begin = position, stop = position;
      if (rows_[position] >= 0 && rows_[position + window - 1] == rows_[position] + window - 1) {
        while (begin > rest && rows_[begin - 1] >= 0 && rows_[begin - 1] + 1 == rows_[begin]) --begin;
        for (++stop; stop < end && rows_[stop] == rows_[stop - 1] + 1;) ++stop;
      }
      if (stop - begin < least_) {
        position += window;
        continue;
      }
      if (rest < begin) on_rest(rest, begin - rest);
      for (std::int64_t piece = begin; piece < stop; piece += std::min(most_, stop - piece))
        on_run(piece, std::min(most_, stop - piece));
      rest = stop;
      position = first + (stop - first + window - 1) / window * window;
    }
    if (rest < end) on_rest(rest, end - rest);
  }

 private:
  const std::int64_t* rows_ = nullptr;
  std::int64_t least_ = 0;
  std::int64_t most_ = 1;
};

}  // namespace ferry::detail
