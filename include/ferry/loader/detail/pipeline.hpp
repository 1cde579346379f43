// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/extents.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// As in io/detail/library.hpp.
extern const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;
[[gnu::used, gnu::retain]] const char* const loader_library =
    &the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;

/// One array of all batches: where it lies in a slot.
struct slot_field {
  array_label label;
  shape<dynamic_rank> extents;  ///< of a full batch
  std::size_t offset = 0;       ///< in bytes
  std::size_t row_bytes = 0;
};

/// The arrays of a slot, each at a multiple of 256 bytes, as device allocations are.
struct slot_layout {
  std::vector<slot_field> fields;
  std::size_t bytes = 0;
  const char* user = "prefetcher";  ///< the class that messages name

  void add(const batch_shape& shape, std::size_t element_bytes, std::int64_t batch);
  /// Bytes of a ring of slots.
  [[nodiscard]] std::size_t bytes_of(std::size_t slots) const;
};

/// The memory of one batch at a time. Whose turn it is follows from the counters of the pipeline.
struct slot {
  using clock = std::chrono::steady_clock;

  std::int64_t number = 0;  ///< of the batch, from the first epoch
  std::vector<std::int64_t> samples;
  bool is_made = false;        ///< true if its worker has finished
  std::exception_ptr failure;  ///< what its source has thrown
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  event_handle arrived;   ///< the end of its transfer
  event_handle released;  ///< the end of the user's work on it
  clock::time_point sent, served;
  std::shared_ptr<access_tracker> host_accesses = std::make_shared<access_tracker>();
  std::shared_ptr<access_tracker> device_accesses = std::make_shared<access_tracker>();
};

/// The samples of each batch. The order of an epoch is cut into steps of batch x ranks samples; each rank
/// takes its part of a step. So all ranks have equally many batches, which keeps collectives together, and no
/// sample is served twice in an epoch. A last step with fewer samples is shared evenly, so a rank may get an
/// empty batch of it.
class batch_order {
 public:
  /// `user`: the class that messages name.
  batch_order(std::int64_t samples, const prefetch_options& options, const char* user = "prefetcher");

  /// "ferry::<user>: <text>"
  [[nodiscard]] std::string message(const char* text) const;
  /// Batches of an epoch.
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  /// Batches of all epochs.
  [[nodiscard]] std::int64_t all_batches() const;
  /// The number of the first batch to serve, counted from the first epoch as in epoch_of and list.
  [[nodiscard]] std::int64_t first() const { return options_.first_batch; }
  /// The number of its epoch.
  [[nodiscard]] std::int64_t epoch_of_first() const {
    return batches_ == 0 ? options_.first_epoch : epoch_of(first());
  }
  [[nodiscard]] std::int64_t epoch_of(std::int64_t batch) const {
    return options_.first_epoch + batch / batches_;
  }
  /// Writes the samples of a batch, numbered from the first epoch on, to `samples`.
  void list(std::int64_t batch, std::vector<std::int64_t>& samples) const;

 private:
  /// The index of the first of `count` samples that is a rank's.
  [[nodiscard]] std::int64_t share(std::int64_t count, std::int64_t rank) const;

  std::int64_t samples_;
  prefetch_options options_;
  const char* user_;
  std::int64_t step_ = 1;
  std::int64_t batches_ = 0;
};

/// How batches reach the user's instance, for pipelines that don't know its type.
class copy_stream {
 public:
  copy_stream() = default;
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  virtual ~copy_stream() = default;

  /// True if batches travel. Else the slots are used where they were made.
  [[nodiscard]] virtual bool travels() const = 0;
  /// The memory of a slot.
  virtual void give_memory(slot& batch_slot, std::size_t index) = 0;
  /// Enqueues the transfer of `rows` rows and records its end; called by the mover's thread only.
  virtual std::int64_t send(slot& batch_slot, const slot_layout& layout, std::int64_t rows) = 0;
  /// Orders later work of the user's instance after an event.
  virtual void order(event& before) = 0;
  /// Throws if batches can't be given to the user's instance now.
  virtual void require_usable() const {}
  /// The end of the work that the user's instance has been given; null if it has ended.
  [[nodiscard]] virtual event_handle mark() = 0;
  /// The error of detached work of the user's instance, see ticket::detach; null for none.
  [[nodiscard]] virtual std::exception_ptr take_finding() { return nullptr; }
  /// Waits for all work on the slots and releases the instances, which may not outlive Kokkos.
  virtual void close() noexcept = 0;
};

/// The memory space of batches for an execution space.
template <class Exec>
using batch_space_of = std::conditional_t<is_host_exec<Exec>, pinned_space, device_space>;

/// The copy stream to an instance, with memory for `slots` slots.
template <ExecutionSpace Exec>
std::unique_ptr<copy_stream> make_copy_stream(const Exec& exec, const slot_layout& layout, std::size_t slots);

/// Something with threads, instances and memory that may not outlive Kokkos.
class closable {
 public:
  closable() = default;
  closable(const closable&) = delete;
  closable& operator=(const closable&) = delete;
  virtual ~closable() = default;
  virtual void close() noexcept = 0;

  /// False in a child process, which has none of the threads.
  [[nodiscard]] bool in_own_process() const { return process_.is_here(); }

 private:
  process_mark process_;
};

/// Kokkos::finalize closes the prefetcher, if it still lives, before the engine of Exec.
template <ExecutionSpace Exec>
void close_at_finalize(const std::shared_ptr<closable>& prefetcher);

/// Closes a prefetcher's inside. In a child process it leaks it: the threads are not there to be joined, and
/// they may have held its locks.
void close_or_abandon(std::shared_ptr<closable> prefetcher);

/// Owns a prefetcher's inside.
template <class Owned, class Exec>
class closing {
 public:
  explicit closing(std::shared_ptr<Owned> owned) : owned_(std::move(owned)) {
    close_at_finalize<Exec>(owned_);
  }
  closing(closing&&) noexcept = default;
  closing& operator=(closing&& source) noexcept {
    owned_.swap(source.owned_);
    return *this;
  }
  ~closing() {
    if (owned_ != nullptr) close_or_abandon(std::move(owned_));
  }
  [[nodiscard]] Owned& operator*() const { return *owned_; }
  [[nodiscard]] Owned* operator->() const { return owned_.get(); }

 private:
  std::shared_ptr<Owned> owned_;
};

/// Makes a batch in the memory of a slot. Several threads call it at once.
using batch_maker = std::function<void(const batch_request& request, std::byte* const* data)>;

/// Ends a call of next().
struct leaving_next {
  std::atomic<bool>& flag;
  ~leaving_next() { flag = false; }
};

/// Results of pipeline::pull.
enum class pulled {
  batch,
  end,     ///< of an epoch, or of the last one
  nothing  ///< the next batch is not ready
};

/// A prefetcher without its types: the ring, its workers and, if batches travel, its mover.
class pipeline : public closable {
 public:
  /// `batches_held`: how many batches the user has at a time.
  static std::unique_ptr<pipeline> make(std::unique_ptr<copy_stream> stream, batch_maker maker,
                                        slot_layout layout, const batch_order& order,
                                        const prefetch_options& options, std::size_t depth,
                                        std::int64_t batches_held = 1);

  /// The next batch in `got`, before any instance is ordered after its transfer. Gives the oldest one back
  /// if the user has `batches_held` of them.
  virtual pulled pull(bool may_block, slot*& got) = 0;
  /// The next batch, with later work of the user's instance ordered after it; null at the end of an epoch,
  /// and after the last one.
  slot* next() {
    throw_finding();
    slot* got = nullptr;
    if (pull(true, got) != pulled::batch) return nullptr;
    order_after(*got);
    return got;
  }
  /// The error of a detached step of the batch before, say.
  virtual void throw_finding() = 0;
  virtual void order_after(const slot& batch) = 0;
  /// True if all batches were pulled.
  [[nodiscard]] virtual bool has_ended() const = 0;
  /// Batches pulled, and those before the first one, counted from the first epoch.
  [[nodiscard]] virtual std::int64_t position() const = 0;

  [[nodiscard]] virtual const slot_layout& layout() const = 0;
  [[nodiscard]] virtual const batch_order& order() const = 0;
  [[nodiscard]] virtual std::size_t depth() const = 0;
  [[nodiscard]] virtual std::vector<epoch_times> times() const = 0;
};

/// A source's samples and the arrays of its batches.
struct source_facts {
  std::int64_t samples;
  std::span<const batch_shape> fields;
  std::span<const std::size_t> element_bytes;

  /// The arrays of a slot. `user`: see slot_layout.
  [[nodiscard]] slot_layout layout(std::int64_t batch, const char* user) const;
};

/// Slots of a ring, without those of rows that are read ahead.
inline std::size_t slots_of(const prefetch_options& options) {
  return static_cast<std::size_t>(options.depth == 0 ? options.workers + 2 : options.depth);
}

/// The inside of a prefetcher.
template <ExecutionSpace Exec>
std::shared_ptr<pipeline> make_pipeline(const Exec& exec, const source_facts& source, batch_maker maker,
                                        const prefetch_options& options);

}  // namespace ferry::detail
