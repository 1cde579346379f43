// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/joined_thread.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/thread_signal.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Writes the rest of a save in a thread of its own. Others may wait for its end.
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

  void wait() override {
    std::unique_lock lock(guard_);
    end_.wait(lock, [this] { return ended_; });
  }
  [[nodiscard]] bool ready() override {
    const std::lock_guard lock(guard_);
    return ended_;
  }
  [[nodiscard]] std::exception_ptr error() {
    const std::lock_guard lock(guard_);
    return error_;
  }
  /// After wait() and without an error: what was saved.
  [[nodiscard]] manifest& made() { return made_; }

 private:
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
    const std::lock_guard lock(guard_);
    error_ = found;
    ended_ = true;
    end_.notify_all();
  }

  owned<checkpoint_save> save_;
  manifest made_;
  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot_;
  std::mutex guard_;
  thread_signal end_;
  bool ended_ = false;
  std::exception_ptr error_;
  processor_set where_;
  std::size_t first_;
  int threads_;
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
    return static_cast<background_save*>(of.resources.front().get())->error();
  };
  state->keeper = std::move(keeper);
  return ticket(std::move(state));
}

}  // namespace ferry::detail
