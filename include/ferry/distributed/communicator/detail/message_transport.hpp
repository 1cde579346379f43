// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_header.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// Processes that send messages, one rank each. Every call begins with a header that each rank sends to each:
/// what it calls, or why it can't. So all ranks know what the others do before data moves, and who has not
/// come when the deadline passes. Derived classes move headers and data.
class message_transport : public transport {
 public:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int first_local() const override { return rank_; }
  [[nodiscard]] int local_count() const override { return 1; }

  void all_gather(int, const call_note& note, std::span<const std::byte> part, std::byte* parts) override;
  void exchange(int, const call_note& note, std::span<const outgoing_part> outgoing,
                std::span<const incoming_part> incoming) override;
  void exchange_device_memory(int, const call_note& note, std::span<const outgoing_part> outgoing,
                              std::span<const incoming_part> incoming) override;
  int pass_descriptor(int, const call_note& note, int owner, int descriptor) override;
  void wait_before_calls(const std::shared_ptr<access_tracker>& tracker, bool reads) override;
  void fail(int, const call_note& note, const char* message) noexcept override;
  /// Tells the others in place of a header, and does not wait for theirs.
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
  [[nodiscard]] std::chrono::nanoseconds deadline() const { return deadline_; }
  [[nodiscard]] bool is_broken() const { return trouble_.is_broken(); }

  /// Sends `header` to the others and receives theirs into headers[r]. Returns which ranks have not come at
  /// `until`, and empty text if all have. Calls stop() if it finds out that a rank will never come.
  virtual std::string swap_headers(const call_header& header, std::vector<call_header>& headers,
                                   clock::time_point until) = 0;
  /// Takes the memory that move_parts will need for these, while the other ranks can still be told of a lack.
  virtual void make_room(std::span<const outgoing_part>) {}
  /// Moves the parts between this rank and the others. Returns whether that ended before `until`.
  virtual bool move_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                          clock::time_point until) = 0;
  /// As above, of parts in memory of devices, if sends_device_memory().
  virtual bool move_device_parts(std::span<const outgoing_part>, std::span<const incoming_part>,
                                 clock::time_point) {
    return false;
  }
  /// The part of pass_descriptor after the headers.
  virtual int move_descriptor(int, int, clock::time_point) { return -1; }
  /// Sends `last` to the others if no call of theirs will be answered any more. Gives up at `until`.
  virtual void send_last(const call_header& last, clock::time_point until) = 0;

  /// Breaks the group: a rank has ended, or the means of communication failed.
  [[noreturn]] void stop(const std::string& text);
  /// Breaks the group: `last` came from a rank in place of its data.
  [[noreturn]] void stop_by(const call_header& last);

 private:
  /// The others count on the header and the data of this rank; without them no later call can be understood.
  void or_break(function_ref<void()> act);
  [[nodiscard]] std::string waited(const call_note& note) const;
  void say_last(call_header::kind kind, const char* said) noexcept;

  /// prepare(header) runs before the headers are sent; the others are told if it throws.
  void meet(call_header::kind kind, const call_note& note, std::uint64_t bytes, const char* said,
            function_ref<void(call_header&)> prepare);
  void meet(call_header::kind kind, const call_note& note, std::uint64_t bytes, const char* said);

  /// See wait_before_calls. Work that failed, and memory that is lacking, are told to the others.
  std::exception_ptr get_ready(call_header& header, function_ref<void(call_header&)> prepare);

  /// All ranks judge the same headers.
  void judge();

  void move(const call_note& note, std::span<const outgoing_part> outgoing,
            std::span<const incoming_part> incoming);
  [[noreturn]] void give_up(const call_note& note);

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
  std::vector<call_header> headers_;
  std::vector<awaited> awaited_;
  group_trouble trouble_;
};

}  // namespace ferry::detail
