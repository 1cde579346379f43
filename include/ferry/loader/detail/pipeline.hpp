// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/batch_request.hpp>
#include <ferry/loader/detail/batch_order.hpp>
#include <ferry/loader/detail/closable.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/prefetch_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::detail {

/// Makes a batch in the memory of a slot.
class batch_maker {
 public:
  batch_maker() = default;
  batch_maker(const batch_maker&) = delete;
  batch_maker& operator=(const batch_maker&) = delete;
  virtual ~batch_maker() = default;
  virtual void make(const batch_request& request, std::byte* const* data) const = 0;
};

/// Results of pipeline::pull.
enum class pulled {
  batch,
  end,     ///< of an epoch, or of the last one
  nothing  ///< the next batch is not ready
};

/// A prefetcher without its types: the ring, its workers and, if batches travel, its mover.
class pipeline final : public closable {
 public:
  /// `batches_held`: how many batches the user has at a time.
  pipeline(std::unique_ptr<lane> way, std::unique_ptr<batch_maker> maker, slot_layout layout,
           const batch_order& order, const prefetch_options& options, std::size_t depth,
           std::int64_t batches_held = 1);
  ~pipeline() override;

  /// The next batch in `got`, before any instance is ordered after its transfer. Gives the oldest one back
  /// where the user has `batches_held` of them.
  pulled pull(bool may_block, slot*& got);
  /// The next batch, with later work of the user's instance ordered after it; null at the end of an epoch,
  /// and after the last one.
  slot* next();
  /// The error of a detached step of the batch before, say.
  void throw_finding();
  void order_after(const slot& batch);
  /// True if all batches were pulled.
  [[nodiscard]] bool has_ended() const;
  /// Batches pulled, and those before the first one, counted from the first epoch.
  [[nodiscard]] std::int64_t position() const;

  /// Stops and frees everything, after the source's calls in progress and the work on the slots. Then next()
  /// throws. Does nothing in a child process.
  void close() noexcept override;

  [[nodiscard]] const slot_layout& layout() const;
  [[nodiscard]] const batch_order& order() const;
  [[nodiscard]] std::size_t depth() const;
  [[nodiscard]] std::vector<epoch_times> times() const;

 private:
  class inside;

  void require_own_process() const;

  std::unique_ptr<inside> inside_;
};

}  // namespace ferry::detail
