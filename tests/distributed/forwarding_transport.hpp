// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace ferry_test {

/// Threads or another group, by what every transport must have: for tests that change one of its functions.
class forwarding_transport : public ferry::detail::transport {
 public:
  forwarding_transport(int ranks, std::chrono::nanoseconds deadline)
      : inner_(ferry::communicator::threads(ranks, {.deadline = deadline}).group()) {}
  explicit forwarding_transport(const ferry::communicator& group) : inner_(group.group()) {}
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] int first_local() const override { return inner_->first_local(); }
  [[nodiscard]] int local_count() const override { return inner_->local_count(); }
  [[nodiscard]] std::string_view name() const override { return "forwarding"; }
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    inner_->all_gather(rank, note, mine, theirs);
  }
  void exchange(int rank, const ferry::detail::call_note& note,
                std::span<const ferry::detail::outgoing_part> targets,
                std::span<const ferry::detail::incoming_part> sources,
                ferry::detail::device_lane* lane) override {
    inner_->exchange(rank, note, targets, sources, lane);
  }
  void wait_before_calls(const std::shared_ptr<ferry::detail::access_tracker>& tracker, bool reads) override {
    inner_->wait_before_calls(tracker, reads);
  }
  void fail(int rank, const ferry::detail::call_note& note, const char* text) noexcept override {
    inner_->fail(rank, note, text);
  }
  void abort(int rank, const char* text) noexcept override { inner_->abort(rank, text); }
  void enter(int rank) override { inner_->enter(rank); }
  void leave(int rank, bool for_good) noexcept override { inner_->leave(rank, for_good); }
  [[nodiscard]] bool is_occupied() const override { return inner_->is_occupied(); }
  void recover() noexcept override { inner_->recover(); }
  [[nodiscard]] std::uint64_t next_number(int rank) override { return inner_->next_number(rank); }

 protected:
  ferry::detail::transport& inner() { return *inner_; }

 private:
  std::shared_ptr<ferry::detail::transport> inner_;
};

}  // namespace ferry_test
