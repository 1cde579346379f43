// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/runtime/detail/work_queue.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace ferry::detail {

inline constexpr const char* cooperative_needs_the_host =
    "but path::cooperative needs the host's threads each time that it runs";

/// The device's teams and the host's workers of path::cooperative share a list of items by these words in
/// page-locked memory of the launch context.
template <class Exec>
class split_cursor {
 public:
  split_cursor(launch_context<Exec>& call, std::int64_t items, std::int64_t item_bytes)
      : teams_(execution_backend<Exec>::tuning(call.exec()).ordered_teams), end_(call.event_to_record()) {
    const std::int64_t least_bytes = execution_backend<Exec>::tuning(call.exec()).split_chunk_bytes;
    const std::int64_t bytes = std::clamp(chunk_rows * item_bytes, least_bytes, 4 * least_bytes);
    // Even a small batch gives every team a few chunks, so that the two ends can meet between chunks.
    chunk_ =
        std::clamp<std::int64_t>(items / (std::int64_t{4} * teams_), 1,
                                 std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, item_bytes)));
    limit_ = call.template pinned<std::int64_t>(1);
    progress_ = call.template pinned<std::int64_t>(teams_);
    *limit_ = items;
    std::fill_n(progress_, teams_, 0);
  }

  /// Items that the device's teams take; final once the workers have taken theirs.
  [[nodiscard]] std::int64_t left_to_device() const { return *limit_; }
  /// Items per chunk of a team.
  [[nodiscard]] std::int64_t chunk() const { return chunk_; }
  [[nodiscard]] kernels::split_state for_device() const { return {progress_, limit_}; }
  [[nodiscard]] split_queue for_host(std::int64_t piece) const {
    return {limit_, progress_, teams_, teams_ * chunk_, piece};
  }
  /// Orders the side stream after the work that the call's own instance has enqueued so far. The side stream
  /// may then write to the call's buffers and read the results of the call's kernels.
  void after(launch_context<Exec>& call) const {
    if (const auto now = call.mark(); now != nullptr)
      execution_backend<Exec>::wait_for(call.side_stream(), *now);
  }
  /// Orders the call's own instance after the side stream.
  void join(launch_context<Exec>& call) const {
    execution_backend<Exec>::record_at(call.side_stream(), *end_);
    execution_backend<Exec>::wait_for(call.exec(), *end_);
  }

 private:
  static constexpr std::int64_t chunk_rows = 256;

  int teams_;
  std::int64_t chunk_ = 1;
  std::int64_t* limit_ = nullptr;
  std::int64_t* progress_ = nullptr;
  std::shared_ptr<typename execution_backend<Exec>::native_event> end_;  ///< of the side stream's work
};

/// Copies a list of rows to the host, its last part first, because the host's workers begin there.
template <class Exec, class Row>
class list_from_back {
 public:
  /// Takes all memory, so that no allocation can fail after the device has begun.
  list_from_back(launch_context<Exec>& call, std::int64_t count)
      : rows_(call.template pinned<Row>(count)),
        count_(count),
        split_(count - std::min(count, first_part)),
        words_(call.template pinned<std::int64_t>(2)),
        arrival_(call.event_to_record()) {
    words_[0] = words_[1] = 0;
  }

  void bring(launch_context<Exec>& call, const Row* sorted) {
    bring(call, sorted, split_, count_, words_);
    bring(call, sorted, 0, split_, words_ + 1);
    execution_backend<Exec>::record_at(call.side_stream(), *arrival_);
  }

  /// Items [first, ...) of the list. Blocks until they have arrived, which the device signals by a word:
  /// querying the device may block, see ring_progress.
  const Row* await_rows(std::int64_t first, ring<Exec>& slots) {
    slots.await(words_[first >= split_ ? 0 : 1], arrival_.get());
    return rows_ + first;
  }

 private:
  static constexpr std::int64_t first_part = 1 << 15;

  void bring(launch_context<Exec>& call, const Row* sorted, std::int64_t begin, std::int64_t end,
             std::int64_t* word) {
    transfer(call.side_stream(), "ferry::indices", rows_ + begin, pinned_space::name, sorted + begin,
             device_space::name, (end - begin) * static_cast<std::int64_t>(sizeof(Row)));
    execution_backend<Exec>::launch_blocks(call.side_stream(), "ferry::indices", 1, 1,
                                           kernels::raise_word<Exec>{word});
  }

  Row* rows_;
  std::int64_t count_;
  std::int64_t split_;
  std::int64_t* words_;  ///< each is not 0 once its part has arrived: the last part, the first part
  std::shared_ptr<typename execution_backend<Exec>::native_event> arrival_;
};

}  // namespace ferry::detail
