// SPDX-License-Identifier: Apache-2.0
#include "background_save.hpp"

#include "../../backends/enabled.hpp"

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace ferry::detail {

background_save::background_save(std::unique_ptr<checkpoint_save>&& save, std::size_t first, int threads,
                                 std::shared_ptr<tensor<std::byte, pageable_space>> snapshot)
    : save_(std::move(save)),
      snapshot_(std::move(snapshot)),
      processors_(processor_set::of_process()),
      first_(first),
      threads_(threads) {
  const signals_elsewhere quiet;
  thread_ = std::jthread([this] { run(); });
}

background_save::~background_save() = default;

void background_save::wait() {
  if (has_ended()) return;
  if (!process_.is_here())
    refuse_child("io::checkpoint", "is saving in the background",
                 "wait for the save before the fork, or save by a checkpoint of the child's own");
  std::unique_lock lock(guard_);
  end_.wait(lock, [this] { return has_ended(); });
}

bool background_save::ready() { return has_ended() || !process_.is_here(); }

void background_save::note_told() noexcept { is_reported_.store(true, std::memory_order_relaxed); }

std::exception_ptr background_save::leave() noexcept {
  const bool is_last = listeners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  return is_last && !is_reported_.load(std::memory_order_relaxed) ? error_ : nullptr;
}

bool background_save::has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }

void background_save::run() noexcept {
  processors_.take();
  std::exception_ptr error;
  try {
    save_->write(first_, save_->chunks(), threads_);
    save_->finish();
  } catch (...) {
    error = std::current_exception();
  }
  save_ = nullptr;  // releases the folder before anyone is told
  snapshot_ = nullptr;
  error_ = error;
  const std::lock_guard lock(guard_);
  ended_.store(true, std::memory_order_release);
  end_.notify_all();
}

ticket ticket_of(const std::shared_ptr<background_save>& save, std::weak_ptr<ticket_state_keeper> keeper) {
  ticket_state_handle state(new ticket_state);
  state->completion = save;
  state->resources.push_back(save);
  state->find_error = [](ticket_state& record) {
    auto& job = *static_cast<background_save*>(record.resources.front().get());
    job.note_told();
    static_cast<void>(job.leave());
    return job.error();
  };
  state->give_up = [](ticket_state& record) noexcept {
    auto& job = *static_cast<background_save*>(record.resources.front().get());
    if (const auto lost = job.leave()) print_unheard(lost);
  };
  state->keeper = std::move(keeper);
  return ticket(std::move(state));
}

}  // namespace ferry::detail
