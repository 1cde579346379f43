// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ferry::detail {

/// A program with ranks that lacks ferry::distributed fails to link, as error.hpp has it of ferry::ferry.
extern const char
    the_library_is_not_linked_so_link_the_target_ferry_distributed_or_compile_src_ferry_distributed_cpp;
[[gnu::used, gnu::retain]] const char* const distributed_library =
    &the_library_is_not_linked_so_link_the_target_ferry_distributed_or_compile_src_ferry_distributed_cpp;

/// Parts that a note does not show, and that messages name if they differ.
enum class note_part : std::size_t { types, state, options, values, content };
inline constexpr std::size_t note_parts = 5;

/// An option of a rule or of a transform, for messages. A long name is cut.
struct shown_option {
  std::array<char, 40> name{};  ///< ends with a zero; empty if ferry does not know it
  double value = 0;
};

/// The call of a rank: the verb, the table's label and number, and all arguments that must agree between the
/// ranks. Of fixed size, so that a transport sends it along and a rank that is out of memory can still say
/// what it called. A long text is cut; the digest covers all of it.
struct call_note {
  static constexpr std::size_t room = 104;
  static constexpr std::uint64_t basis = 14695981039346656037ull;

  std::array<char, room> text{};
  std::uint64_t digest = basis;
  std::uint64_t length = 0;
  std::array<std::uint64_t, note_parts> hidden{};  ///< digests of what the text does not show
  static constexpr std::size_t most_options = 12;
  std::array<shown_option, most_options> options{};  ///< the first ones of the rule and its transforms
  std::uint64_t option_count = 0;

  call_note() = default;
  explicit call_note(std::string_view words) { add(words); }

  /// Appends words. FNV-1a.
  call_note& add(std::string_view words);
  template <class Number>
  call_note& add_number(Number number) {
    return add(joined(" ", number));
  }
  /// A number that the text does not show, of a type without padding.
  template <class Number>
  call_note& add_hidden(note_part part, const Number& number) {
    return add_hidden_bytes(part, &number, sizeof number);
  }
  call_note& add_hidden_bytes(note_part part, const void* data, std::size_t bytes);

  /// Keeps an option for messages, with the parts of its name. Those after the first most_options are in the
  /// digest alone.
  void show_option(double value, std::initializer_list<std::string_view> name);

  [[nodiscard]] std::string_view words() const {
    return {text.data(), static_cast<std::size_t>(std::min<std::uint64_t>(length, room))};
  }
  /// One number for all that equal notes have in common.
  [[nodiscard]] std::uint64_t digest_of_all() const;
  /// True if both are the same call as the text tells it. A rank that refuses its arguments may differ in the
  /// rest.
  [[nodiscard]] bool reads_like(const call_note& note) const;
  friend bool operator==(const call_note& a, const call_note& b) {
    return a.reads_like(b) && a.hidden == b.hidden;
  }
};

/// "; they differ in the state": what the words of different calls, by rank, do not show; empty if they show
/// all.
[[nodiscard]] std::string hidden_difference(std::span<const call_note* const> calls);

/// The message of a failing rank, of fixed size.
struct failure_text {
  std::array<char, 400> text{};

  void set(std::string_view message);
  [[nodiscard]] const char* c_str() const { return text.data(); }
};

enum class call_kind : std::uint32_t { all_gather, exchange, failure, abort, late };

/// The words of a rank at the beginning of every call, which are equal on all ranks if all is well.
struct call_brief {
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t call = 0;    ///< number of the call
  std::uint64_t digest = 0;  ///< of the note
  std::uint64_t bytes = 0;   ///< of each rank in an all_gather
  /// The bytes of an all_gather, if they fit: most of those of verbs do.
  static constexpr std::size_t room = 1024;
  std::array<std::byte, room> data{};
};

/// The full words of a rank, which ranks exchange if their brief ones differ, and with which a rank leaves.
struct call_header {
  call_note note;
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
  failure_text said;
};

/// A rank's end of an exchange of device memory between threads of one process. The sender publishes an
/// event: the work that makes its parts. Each receiver copies on its own device after that event, and waits
/// for its copies before it says that it has read. So the sender, which stays in the call until all have
/// read, keeps its memory for as long as a copy uses it, also if an exception ends the copies of a rank.
class device_lane {
 public:
  device_lane() = default;
  device_lane(const device_lane&) = delete;
  device_lane& operator=(const device_lane&) = delete;
  virtual ~device_lane() = default;

  /// The work enqueued so far makes what this rank sends. Before the ranks meet, by the rank's thread.
  virtual void publish() = 0;
  /// The end of that work, null if it has ended, and the device of what it makes. By any thread.
  /// @{
  [[nodiscard]] virtual const event_handle& published() const = 0;
  [[nodiscard]] virtual int device() const = 0;
  /// @}
  /// Begins to copy a part of a sender to memory of this rank; `sender` is null if it is host memory.
  virtual void take(const device_lane* sender, std::byte* target, const std::byte* source,
                    std::size_t bytes) = 0;
  /// Copies a part of this rank to host memory, for a receiver without a lane. By any thread. Blocks.
  virtual void read(std::byte* target, const std::byte* source, std::size_t bytes) const = 0;
  /// Waits for the copies that this rank began. abandon() after an exception, whose error it leaves alone.
  /// @{
  virtual void finish() = 0;
  virtual void abandon() noexcept = 0;
  /// @}
};

class access_tracker;
class rank_devices;

/// Bytes for one rank or from one rank.
struct outgoing_part {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};
struct incoming_part {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Calls act(text) with the message of an exception, also without memory for a copy.
void with_message_of(const std::exception_ptr& error, function_ref<void(const char*)> act);

/// Why a group is broken: the first reason counts. Transports that several threads use lock it.
class group_trouble {
 public:
  enum class kind { none, peer, late, protocol };

  [[nodiscard]] bool is_broken() const { return kind_ != kind::none; }
  [[nodiscard]] bool is(kind reason) const { return kind_ == reason; }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Keeps the first reason, which text() composes.
  void set(kind reason, function_ref<std::string()> text) noexcept;
  void clear() noexcept;
  /// Throws peer_error, communication_error or protocol_error.
  [[noreturn]] void fail() const;

 private:
  kind kind_ = kind::none;
  std::string text_;
};

/// "ferry::communicator: rank 1 failed: <message>"
[[nodiscard]] std::string text_of_abort(int rank, const char* message);
/// Throws peer_error: another rank has failed in a call.
[[noreturn]] void throw_peer_failed(int rank, const call_note& note, const failure_text& message);

/// How the ranks of a group reach each other. A process may hold several ranks, each with a thread of its
/// own; the functions are called by the thread of `rank`.
///
/// all_gather, exchange and fail are the collective calls. All ranks make them in the same order, and each
/// takes part in every one: a rank that fails calls fail() where the others call all_gather or exchange. A
/// call ends in the same way on all ranks:
///
///   notes differ                   protocol_error on all; the group is broken
///   a rank called fail()           peer_error on the others, which name it; the group stays as it was
///   a rank does not come in time   communication_error on all that came; the group is broken
///   a rank called abort()          peer_error on all others, from then on
///
/// Memory passed to exchange is not touched after the call, however it ends.
class transport {
 public:
  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport();

  /// False in a child process, which shares the connections with its parent and has none of its threads.
  [[nodiscard]] bool in_own_process() const noexcept { return process_.is_here(); }

  /// Number of ranks of the group.
  [[nodiscard]] virtual int size() const = 0;
  /// The ranks of this process are [first_local, first_local + local_count).
  /// @{
  [[nodiscard]] virtual int first_local() const = 0;
  [[nodiscard]] virtual int local_count() const = 0;
  /// @}
  /// Name of the transport, for messages.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// theirs[r * mine.size()] .. = what rank r passed; all pass the same number of bytes.
  virtual void all_gather(int rank, const call_note& note, std::span<const std::byte> part,
                          std::byte* parts) = 0;
  /// Sends outgoing[i] to rank i % size() and receives incoming[i] from it: one or several lists of size()
  /// parts, as many on all ranks. The sizes of both ends agree. Between threads the parts may lie in memory
  /// of devices: then `lane` has been published, and lives as long as the call. If the copies of a rank fail,
  /// it throws their error, the others throw peer_error, and the group is broken.
  virtual void exchange(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                        std::span<const incoming_part> incoming, device_lane* lane = nullptr) = 0;
  /// True if ranks read each other's memory by its addresses: they are threads of this process.
  [[nodiscard]] virtual bool shares_addresses() const { return false; }
  /// A call after an all_gather of addresses, if the ranks are threads of this process and have read each
  /// other's memory in between: all_gather, or with `failed` what fail() does. If the group breaks, no rank
  /// leaves before all others have ended their reads, too, by a call or by leave().
  virtual void end_reads(int rank, const call_note& note, const char* failed, std::span<const std::byte> part,
                         std::byte* parts);
  /// From here on, each call waits first for the writes of this process that have been recorded, and for the
  /// `reads`, while somebody else keeps the tracker. For memory that other processes reach, whose devices do
  /// not know of each other's work; threads need not wait.
  virtual void wait_before_calls(const std::shared_ptr<access_tracker>& tracker, bool reads);
  /// Takes part in the next call of the others as the rank that failed.
  virtual void fail(int rank, const call_note& note, const char* message) noexcept = 0;

  /// Ends all present and later calls of the other ranks with what this rank says.
  virtual void abort(int rank, const char* message) noexcept = 0;
  /// A thread begins or ends to act for `rank`. enter throws invalid_argument if another one does, and
  /// out_of_range for a rank that is not of this process. `for_good`: no other thread will follow, so those
  /// who wait for the rank wait in vain.
  /// @{
  virtual void enter(int rank) = 0;
  virtual void leave(int rank, bool for_good) noexcept = 0;
  /// @}
  /// Whether any thread acts for a rank of this process.
  [[nodiscard]] virtual bool is_occupied() const = 0;
  /// After all threads of a run have ended: makes the group usable again if it was broken by abort() and all
  /// of its ranks are in this process.
  virtual void recover() noexcept {}

  /// The devices of the ranks; null if the ranks have none.
  [[nodiscard]] virtual const rank_devices* devices() const { return nullptr; }

  /// See rank_windows_of.
  [[nodiscard]] std::shared_ptr<void>& windows() { return windows_; }

  /// A number for the next table or plan of this group that `rank` makes: the same on all ranks that make
  /// theirs in the same order.
  [[nodiscard]] virtual std::uint64_t next_number(int rank) = 0;

 private:
  process_mark process_;
  std::shared_ptr<void> windows_;
};

/// The rank that the calling thread acts for in each group; bindings nest.
class rank_binding {
 public:
  rank_binding(const transport* group, int rank);
  rank_binding(const rank_binding&) = delete;
  rank_binding& operator=(const rank_binding&) = delete;
  /// Bindings may end in any order.
  ~rank_binding();

  /// The rank of this thread, -1 if it has none.
  [[nodiscard]] static int rank_in(const transport* group);

 private:
  const transport* group_;
  int rank_;
  rank_binding* outer_;
};

}  // namespace ferry::detail
