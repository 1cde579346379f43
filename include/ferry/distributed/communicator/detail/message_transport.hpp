// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Processes that send messages, one rank each. Every call begins with a meeting: an all-gather of brief
/// words about what each rank calls, which carries small data, too. If these differ, or a rank says that it
/// can't, all ranks exchange their full words and judge them alike. So all ranks know what the others do
/// before data moves. A rank that has waited for its deadline, or that leaves by an exception, sends its last
/// words to all others, who look for them while they wait. Derived classes move the bytes.
class message_transport : public transport {
 public:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int first_local() const override { return rank_; }
  [[nodiscard]] int local_count() const override { return 1; }

  void all_gather(int, const call_note& note, std::span<const std::byte> part, std::byte* parts) override;
  void exchange(int, const call_note& note, std::span<const outgoing_part> outgoing,
                std::span<const incoming_part> incoming, device_lane*) override;
  void wait_before_calls(const std::shared_ptr<access_tracker>& tracker, bool reads) override;
  void fail(int, const call_note& note, const char* message) noexcept override;
  void abort(int, const char* message) noexcept override;
  void enter(int rank) override;
  void leave(int, bool) noexcept override { occupied_ = false; }
  [[nodiscard]] bool is_occupied() const override { return occupied_; }
  [[nodiscard]] std::uint64_t next_number(int) override { return numbers_++; }

 protected:
  explicit message_transport(std::chrono::nanoseconds deadline) : deadline_(deadline) {}
  void become(int rank, int size) {
    rank_ = rank;
    size_ = size;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool is_broken() const { return trouble_.is_broken(); }

  /// The end of a wait: all has come, the deadline has passed, or another rank has sent its last words.
  enum class outcome { done, late, told };
  /// parts[r * bytes] .. = what rank r passed. `last` receives last words of another rank.
  virtual outcome gather(const std::byte* part, std::byte* parts, std::size_t bytes, clock::time_point until,
                         call_header& last) = 0;
  /// Takes the memory that move_parts will need for these, while the other ranks can still be told of a lack.
  virtual void make_room(std::span<const outgoing_part>) {}
  /// Moves the parts between this rank and the others.
  virtual outcome move_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                             clock::time_point until, call_header& last) = 0;
  /// Sends last words to the others, who may not wait for any. Does not wait for them.
  virtual void send_last(const call_header& last) = 0;
  /// Last words of another rank that have come; false if there are none until then.
  virtual bool take_last(call_header& last, clock::time_point until) = 0;

  /// Breaks the group: a rank has ended, or the means of communication failed.
  [[noreturn]] void stop(const std::string& text);

 private:
  /// The others count on this rank; without it no later call can be understood.
  void or_break(function_ref<void()> act);
  void gather_or_give_up(const call_note& note, const std::byte* part, std::byte* parts, std::size_t bytes);
  [[nodiscard]] std::string waited(const call_note& note) const;
  void say_last(call_kind kind, const char* said) noexcept;
  /// prepare(brief) runs before the meeting; the others are told if it throws.
  void meet(call_kind kind, const call_note& note, std::uint64_t bytes, const char* said,
            function_ref<void(call_brief&)> prepare);
  /// See wait_before_calls. Work that failed, and memory that is lacking, are told to the others.
  std::exception_ptr get_ready(call_header& header, call_brief& brief,
                               function_ref<void(call_brief&)> prepare);
  /// All ranks judge the same headers.
  void judge(const std::vector<call_header>& headers);
  /// Ends a wait that was in vain, or that last words of another rank have ended.
  void require_done(outcome end, const call_note& note, const call_header& last);

  struct awaited {
    std::weak_ptr<access_tracker> tracker;
    bool reads;  ///< besides writes
  };

  std::chrono::nanoseconds deadline_;
  int rank_ = 0;
  int size_ = 1;
  bool occupied_ = false;
  std::uint64_t numbers_ = 0;
  std::uint64_t calls_ = 0;
  std::vector<call_brief> briefs_;
  std::vector<awaited> awaited_;
  group_trouble trouble_;
};

}  // namespace ferry::detail
