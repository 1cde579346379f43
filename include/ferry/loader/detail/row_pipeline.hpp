// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/loader/detail/closable.hpp>
#include <ferry/loader/detail/early_rows.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/slice.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A batch whose rows are read ahead.
struct row_entry {
  slot* of = nullptr;  ///< null: the end of an epoch
  row_plan plan;
  std::size_t room = 0;
};

/// The inside of a row_prefetcher. The rows of batch j are read in two parts. The early part begins while the
/// steps of batches i to j - 1 have yet to come or run: it comes after all steps before i, and leaves out the
/// rows that one of those steps will update, which their plans tell. The late part reads these rows on the
/// user's instance, after step j - 1. So every row is read after its last update and before its next one.
template <class Exec, class T, class TableSpace, class Index>
class row_pipeline final : public closable {
  using backend = execution_backend<Exec>;
  using early = early_rows_on<Exec, T, TableSpace>;

 public:
  using room = typename early::room;
  using space = typename decltype(room::rows)::memory_space;

  row_pipeline(const Exec& exec, const array_ref<const T, TableSpace>& table, std::unique_ptr<pipeline> ring,
               std::int64_t batch, int ahead)
      : exec_(exec), rows_(table.rows()), ahead_(static_cast<std::size_t>(ahead)), ring_(std::move(ring)) {
    early_.emplace(exec, table);
    const device where = memory_home(exec);
    const auto most = static_cast<std::size_t>(batch) * ring_->layout().fields.at(0).extents.width();
    for (std::size_t i = 0; i <= ahead_; ++i) {
      room& made = rooms_.emplace_back();
      made.rows =
          tensor<T, space>("row_prefetcher::rows", where, most, static_cast<std::size_t>(table.width()));
      made.early = tensor<std::int64_t, space>("row_prefetcher::early", where, most);
      made.late = tensor<std::int64_t, space>("row_prefetcher::late", where, most);
    }
  }
  ~row_pipeline() override { close(); }

  /// The next batch, with its rows; null at the end of an epoch, and after the last one.
  const row_entry* next() {
    if (!in_own_process()) {
      slot* none = nullptr;
      static_cast<void>(ring_->pull(false, none));  // says why
    }
    if (!exec_)
      throw invalid_argument(
          "ferry::row_prefetcher: Kokkos was finalized, which stops its prefetchers; end the loop before Kokkos::finalize");
    if (backend::capturing(*exec_))
      throw invalid_argument(
          "ferry::row_prefetcher: the instance is being captured into a graph; end the capture before next()");
    if (in_next_.exchange(true))
      throw invalid_argument(
          "ferry::row_prefetcher: two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks");
    const leaving back{in_next_};
    ring_->throw_finding();
    early_->come_after(*exec_);  // the step of the batch before has been enqueued
    current_.reset();
    if (queue_.empty()) pull(true);
    row_entry& front = queue_.front();
    if (front.of != nullptr) {
      // Where this throws, the next call returns the batch.
      ring_->order_after(*front.of);
      early_->end(*exec_, rooms_[front.room], front.plan.positions());
      current_ = std::move(front);
      --batches_;
    }
    queue_.erase(queue_.begin());
    while (batches_ < ahead_ && !ended_ && broken_ == nullptr && pull(false)) {
    }
    return current_ ? &*current_ : nullptr;
  }

  void close() noexcept override {
    if (!in_own_process() || !exec_) return;
    ring_->close();  // waits for the user's instance
    early_->close();
    queue_.clear();
    current_.reset();
    rooms_.clear();
    exec_.reset();
  }

  [[nodiscard]] pipeline& ring() const { return *ring_; }
  [[nodiscard]] room& room_of(const row_entry& batch) { return rooms_[batch.room]; }

 private:
  struct leaving {
    std::atomic<bool>& flag;
    ~leaving() { flag = false; }
  };

  /// Takes a batch and begins to read its rows. Returns false where none is ready. An error that the ring
  /// throws comes again with the next call, so that of a look ahead is left for its turn.
  bool pull(bool may_block) {
    if (broken_ != nullptr) std::rethrow_exception(broken_);
    slot* got = nullptr;
    pulled found = pulled::nothing;
    try {
      found = ring_->pull(may_block, got);
    } catch (...) {
      if (may_block) throw;
      return false;
    }
    if (found == pulled::nothing) return false;
    if (found == pulled::end) {
      ended_ = ring_->has_ended();
      queue_.push_back({});
      return true;
    }
    try {
      read_ahead(*got);
    } catch (...) {  // the batch is lost
      broken_ = std::current_exception();
      if (may_block) throw;
      return false;
    }
    return true;
  }

  void read_ahead(slot& got) {
    const slot_field& field = ring_->layout().fields[0];
    const std::array<std::size_t, 1> size{got.samples.size() * field.extents.width()};
    const tensor_slice<const Index, space> indices(
        field.label, reinterpret_cast<const Index*>(got.device + field.offset),
        shape<dynamic_rank>::make(size, std::string(field.label), sizeof(Index)), got.device_accesses);
    row_entry made{&got, make_plan(early_->planner(*exec_), indices, rows_), number_ % rooms_.size()};
    std::vector<row_plan> window;
    if (current_) window.push_back(current_->plan);
    for (const row_entry& each : queue_)
      if (each.of != nullptr) window.push_back(each.plan);
    early_->begin(rooms_[made.room], made.plan, window);
    queue_.push_back(std::move(made));
    ++number_;
    ++batches_;
  }

  std::optional<Exec> exec_;
  std::int64_t rows_;
  std::size_t ahead_;
  std::unique_ptr<pipeline> ring_;
  std::vector<room> rooms_;
  std::optional<early> early_;  // after the rooms: its thread writes to them
  std::vector<row_entry> queue_;
  std::optional<row_entry> current_;
  std::size_t number_ = 0;   ///< of batches pulled
  std::size_t batches_ = 0;  ///< in the queue
  bool ended_ = false;
  std::atomic<bool> in_next_{false};
  std::exception_ptr broken_;
};

}  // namespace ferry::detail
