// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/row_pipeline.hpp>

#include "row_reader.hpp"

#include <ferry/error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// Ends a call of next().
struct leaving_next_rows {
  std::atomic<bool>& flag;
  ~leaving_next_rows() { flag = false; }
};

}  // namespace

class row_pipeline::inside {
 public:
  inside(std::unique_ptr<pipeline> ring, std::unique_ptr<row_reader> reader, std::size_t ahead)
      : ahead_(ahead),
        ring_(std::move(ring)),
        reader_(std::move(reader)),
        position_(ring_->order().first()) {}

  [[nodiscard]] pipeline& ring() const { return *ring_; }
  [[nodiscard]] std::int64_t position() const { return position_; }
  [[nodiscard]] row_memory rows_of(const row_entry& batch) const {
    return reader_->rows(batch.room, batch.plan.positions());
  }

  const row_entry* next() {
    if (reader_ == nullptr)
      throw invalid_argument(
          "ferry::row_prefetcher: Kokkos was finalized, which stops its prefetchers; end the loop before Kokkos::finalize");
    if (reader_->capturing())
      throw invalid_argument(
          "ferry::row_prefetcher: the instance is being captured into a graph; end the capture before next()");
    if (in_next_.exchange(true))
      throw invalid_argument(
          "ferry::row_prefetcher: two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks");
    const leaving_next_rows leaving{in_next_};
    ring_->throw_finding();
    reader_->order_after_steps();  // the step of the batch before has been enqueued
    current_.reset();
    if (queue_.empty()) pull(true);
    row_entry& front = queue_.front();
    if (front.batch != nullptr) {
      // When this throws, the next call returns the batch.
      ring_->order_after(*front.batch);
      reader_->end(front.room, front.plan.positions());
      current_ = std::move(front);
      --batches_;
      ++position_;
    }
    queue_.erase(queue_.begin());
    while (batches_ < ahead_ && !ended_ && broken_ == nullptr && pull(false)) {
    }
    return current_ ? &*current_ : nullptr;
  }

  void close() noexcept {
    if (reader_ == nullptr) return;
    ring_->close();  // waits for the user's instance
    reader_->close();
    queue_.clear();
    current_.reset();
    reader_ = nullptr;
  }

 private:
  /// Takes a batch and begins to read its rows. Returns false if none is ready. A look ahead (not
  /// `may_block`) drops an error of the ring, which throws it again when the batch is due.
  bool pull(bool may_block) {
    if (broken_ != nullptr) std::rethrow_exception(broken_);
    slot* batch = nullptr;
    pulled result = pulled::nothing;
    try {
      result = ring_->pull(may_block, batch);
    } catch (...) {
      if (may_block) throw;
      return false;
    }
    if (result == pulled::nothing) return false;
    if (result == pulled::end) {
      ended_ = ring_->has_ended();
      queue_.push_back({});
      return true;
    }
    try {
      read_ahead(*batch);
    } catch (...) {  // the batch is lost
      broken_ = std::current_exception();
      if (may_block) throw;
      return false;
    }
    return true;
  }

  void read_ahead(slot& batch) {
    row_entry entry{&batch, reader_->plan(batch, ring_->layout().fields[0]), number_ % reader_->rooms()};
    std::vector<row_plan> window;
    if (current_) window.push_back(current_->plan);
    for (const row_entry& earlier : queue_)
      if (earlier.batch != nullptr) window.push_back(earlier.plan);
    reader_->begin(entry.room, entry.plan, window);
    queue_.push_back(std::move(entry));
    ++number_;
    ++batches_;
  }

  std::size_t ahead_;  ///< most batches in the queue
  std::unique_ptr<pipeline> ring_;
  std::unique_ptr<row_reader> reader_;  ///< null after close
  std::vector<row_entry> queue_;
  std::optional<row_entry> current_;
  std::int64_t position_;    ///< see row_pipeline::position
  std::size_t number_ = 0;   ///< of batches pulled
  std::size_t batches_ = 0;  ///< in the queue
  bool ended_ = false;
  std::atomic<bool> in_next_{false};
  std::exception_ptr broken_;
};

row_pipeline::row_pipeline(std::unique_ptr<pipeline> ring, std::unique_ptr<row_reader> reader,
                           std::size_t ahead)
    : inside_(std::make_unique<inside>(std::move(ring), std::move(reader), ahead)) {}
row_pipeline::~row_pipeline() { close(); }

const row_entry* row_pipeline::next() {
  if (!in_own_process()) {
    slot* none = nullptr;
    static_cast<void>(ring().pull(false, none));  // says why
  }
  return inside_->next();
}

std::int64_t row_pipeline::position() const { return inside_->position(); }

void row_pipeline::close() noexcept {
  if (in_own_process()) inside_->close();
}

pipeline& row_pipeline::ring() const { return inside_->ring(); }
row_memory row_pipeline::rows_of(const row_entry& batch) const { return inside_->rows_of(batch); }

}  // namespace ferry::detail
