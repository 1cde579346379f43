// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../runtime/processors.hpp"

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace ferry::detail {

/// Writes the rest of a save in a thread of its own. Others may wait for its end. A child of the process
/// never locks or destroys it: the thread may have held the lock, and the new file is the parent's.
class background_save final : public event {
 public:
  /// Chunks from `first` on have been copied; `snapshot` is the memory of the copies.
  background_save(std::unique_ptr<checkpoint_save>&& save, std::size_t first, int threads,
                  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot);
  ~background_save() override;

  /// Throws invalid_argument in a child that was forked before the end.
  void wait() override;
  [[nodiscard]] bool ready() override;
  /// False in a child of the process that saves.
  [[nodiscard]] bool in_own_process() const noexcept { return process_.is_here(); }
  /// After wait().
  [[nodiscard]] std::exception_ptr error() const { return error_; }
  /// The checkpoint object and the ticket hear of an error; the later of the two that leaves tells it, unless
  /// the ticket has thrown it.
  /// @{
  void note_told() noexcept;
  /// The error that the caller has to tell; null for none. Each of the two calls it once, the checkpoint
  /// object after wait().
  [[nodiscard]] std::exception_ptr leave() noexcept;
  /// @}

 private:
  [[nodiscard]] bool has_ended() const noexcept;
  void run() noexcept;

  std::unique_ptr<checkpoint_save> save_;
  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot_;
  std::mutex guard_;
  std::condition_variable end_;
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::atomic<int> listeners_{2};
  std::atomic<bool> is_reported_{false};
  processor_set processors_;
  std::size_t first_;
  int threads_;
  process_mark process_;
  std::jthread thread_;  // ends first: it uses the others
};

/// A ticket of a save: wait() throws its error.
ticket ticket_of(const std::shared_ptr<background_save>& save, std::weak_ptr<ticket_state_keeper> keeper);

}  // namespace ferry::detail
