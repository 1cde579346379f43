// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/joined_thread.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/thread_signal.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/detail/unheard_findings.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Writes the rest of a save in a thread of its own. Others may wait for its end. A child of the process
/// never locks or destroys it: the thread may have held the lock, and the new file is the parent's.
template <class Dependent>
class basic_background_save final : public event {
  using manifest = late<detail::manifest, Dependent>;
  using checkpoint_save = basic_checkpoint_save<Dependent>;

 public:
  /// Chunks from `first` on have been copied; `snapshot` is the memory of the copies.
  basic_background_save(owned<checkpoint_save>&& save, std::size_t first, int threads,
                        std::shared_ptr<tensor<std::byte, pageable_space>> snapshot)
      : save_(std::move(save)),
        snapshot_(std::move(snapshot)),
        where_(processor_set::of_process()),
        first_(first),
        threads_(threads) {
    const signals_elsewhere quiet;
    thread_.start(
        [](void* self) -> void* {
          static_cast<basic_background_save*>(self)->run();
          return nullptr;
        },
        this);
  }
  ~basic_background_save() override { thread_.join(); }

  /// Throws invalid_argument in a child that was forked before the end.
  void wait() override {
    if (has_ended()) return;
    if (!process_.is_here())
      refuse_child("io::checkpoint", "is saving in the background",
                   "wait for the save before the fork, or save by a checkpoint of the child's own");
    std::unique_lock lock(guard_);
    end_.wait(lock, [this] { return has_ended(); });
  }
  [[nodiscard]] bool ready() override { return has_ended() || !process_.is_here(); }
  /// False in a child of the process that saves.
  [[nodiscard]] bool in_own_process() const noexcept { return process_.is_here(); }
  /// After wait().
  [[nodiscard]] std::exception_ptr error() const { return error_; }
  /// The checkpoint object and the ticket hear of an error; the later of the two that leaves tells it, unless
  /// the ticket has thrown it.
  /// @{
  void note_told() noexcept { told_.store(true, std::memory_order_relaxed); }
  /// The error that the caller has to tell; null for none. Each of the two calls it once, the checkpoint
  /// object after wait().
  [[nodiscard]] std::exception_ptr leave() noexcept {
    const bool is_last = listeners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    return is_last && !told_.load(std::memory_order_relaxed) ? error_ : nullptr;
  }
  /// @}
  /// After wait() and without an error: what was saved.
  [[nodiscard]] manifest& made() { return made_; }

 private:
  [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  void run() noexcept {
    where_.take();
    std::exception_ptr found;
    try {
      save_->write(first_, save_->chunks(), threads_);
      save_->finish();
      made_ = std::move(save_->made());
    } catch (...) {
      found = std::current_exception();
    }
    save_ = nullptr;  // releases the folder before anyone is told
    snapshot_ = nullptr;
    error_ = found;
    const std::lock_guard lock(guard_);
    ended_.store(true, std::memory_order_release);
    end_.notify_all();
  }

  owned<checkpoint_save> save_;
  manifest made_;
  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot_;
  std::mutex guard_;
  thread_signal end_;
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::atomic<int> listeners_{2};
  std::atomic<bool> told_{false};
  processor_set where_;
  std::size_t first_;
  int threads_;
  process_mark process_;
  joined_thread thread_;  // ends first: it uses the others
};
using background_save = basic_background_save<void>;

/// A ticket of a save: wait() throws its error.
template <class...>
ticket ticket_of(const std::shared_ptr<background_save>& save, std::weak_ptr<ticket_state_keeper> keeper) {
  ticket_state_handle state(new ticket_state);
  state->done = save;
  state->resources.push_back(save);
  state->find_error = [](ticket_state& of) {
    auto& from = *static_cast<background_save*>(of.resources.front().get());
    from.note_told();
    static_cast<void>(from.leave());
    return from.error();
  };
  state->give_up = [](ticket_state& of) noexcept {
    auto& from = *static_cast<background_save*>(of.resources.front().get());
    if (const auto lost = from.leave()) print_unheard(lost);
  };
  state->keeper = std::move(keeper);
  return ticket(std::move(state));
}

}  // namespace ferry::detail
