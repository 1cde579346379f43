// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/detail/pipeline.hpp>

#include "support/manual_event.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

/// A device of threads: its queues run tasks in order, each after a random delay.
namespace ferry_test {

/// Runs tasks in order. Each comes after a random time of at most `longest`.
class task_queue {
 public:
  task_queue(std::uint64_t seed, std::chrono::microseconds longest)
      : random_(seed), longest_(longest.count()), thread_([this] { run(); }) {}
  task_queue(const task_queue&) = delete;
  task_queue& operator=(const task_queue&) = delete;
  ~task_queue() {
    {
      const std::lock_guard lock(guard_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void put(std::function<void()> task) {
    {
      const std::lock_guard lock(guard_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  /// Waits until everything put so far has run.
  void finish() {
    auto end = std::make_shared<manual_event>();
    put([end] { end->end(); });
    end->wait();
  }

 private:
  void run() {
    std::unique_lock lock(guard_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (longest_ > 0 && random_() % 4 == 0)
        std::this_thread::sleep_for(
            std::chrono::microseconds(random_() % static_cast<std::uint64_t>(longest_)));
      task();
      lock.lock();
    }
  }

  std::mt19937_64 random_;
  std::int64_t longest_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

/// The queues that the stream of copies and its test share: the queue of the user's work, and that of the transfers.
struct fake_device {
  fake_device(std::uint64_t seed, std::chrono::microseconds longest)
      : compute(seed, longest), link(seed + 1, longest) {}
  task_queue compute;
  task_queue link;
  std::atomic<bool> fails{false};  ///< whether transfers throw
  std::atomic<int> closed{0};
};

class fake_stream final : public ferry::detail::copy_stream {
 public:
  fake_stream(std::shared_ptr<fake_device> device, std::size_t bytes, std::size_t slots)
      : device_(std::move(device)), bytes_(bytes), host_(bytes * slots), device_bytes_(bytes * slots) {}

  [[nodiscard]] bool travels() const override { return true; }
  void give_memory(ferry::detail::slot& target, std::size_t index) override {
    target.host = host_.data() + index * bytes_;
    target.device = device_bytes_.data() + index * bytes_;
  }
  std::int64_t send(ferry::detail::slot& target, const ferry::detail::slot_layout&, std::int64_t) override {
    if (device_->fails) throw ferry::device_error("the link is broken");
    auto end = std::make_shared<manual_event>();
    device_->link.put([end, to = target.device, from = target.host, bytes = bytes_] {
      std::memcpy(to, from, bytes);
      end->end();
    });
    target.arrived = end;
    target.host_accesses->add_read(end, 7);
    target.device_accesses->add_write(end, 7);
    return static_cast<std::int64_t>(bytes_);
  }
  void order(ferry::detail::event& before) override {
    device_->compute.put([&before] { before.wait(); });  // the slot keeps the event until it is retired
  }
  [[nodiscard]] ferry::detail::event_handle mark() override {
    auto end = std::make_shared<manual_event>();
    device_->compute.put([end] { end->end(); });
    return end;
  }
  void close() noexcept override {
    device_->link.finish();
    device_->compute.finish();
    ++device_->closed;
  }

 private:
  std::shared_ptr<fake_device> device_;
  std::size_t bytes_;
  std::vector<std::byte> host_, device_bytes_;
};

}  // namespace ferry_test
