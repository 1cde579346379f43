// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// One call of a verb on a sharded table: by one rank of several, or by one thread for the whole group. Its
/// phases are the collective calls of the transport, in an order that is the same on all ranks. An exception
/// between two phases is told to the others in the next phase; so every rank leaves the verb at the same
/// point, and the group stays usable.
class collective {
 public:
  /// Throws as communicator::rank.
  collective(const communicator& comm, const call_note& note);
  collective(const collective&) = delete;
  collective& operator=(const collective&) = delete;

  /// True if one thread acts for all ranks; then there are no phases.
  [[nodiscard]] bool is_whole() const { return rank_ < 0; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return group_->size(); }
  [[nodiscard]] const std::shared_ptr<transport>& group() const { return group_; }
  /// The ranks that this thread acts for.
  /// @{
  [[nodiscard]] int first() const { return is_whole() ? group_->first_local() : rank_; }
  [[nodiscard]] int last() const { return is_whole() ? first() + group_->local_count() : rank_ + 1; }
  /// @}

  /// The values that the ranks pass, by rank.
  template <class T>
  [[nodiscard]] std::vector<T> all_gather(std::span<const T> part) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(part.size() * static_cast<std::size_t>(ranks()));
    all_gather_bytes(std::as_bytes(part), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  void all_gather_bytes(std::span<const std::byte> part, std::byte* parts);
  /// Waits for all ranks, which have succeeded up to here. Does nothing in a call for the whole group.
  void agree();
  /// all_gather and agree() in one phase: as agree() it comes after reads.
  /// @{
  template <class T>
  [[nodiscard]] std::vector<T> agree_on(std::span<const T> mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(mine.size() * static_cast<std::size_t>(ranks()));
    agree_on_bytes(std::as_bytes(mine), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  void agree_on_bytes(std::span<const std::byte> mine, std::byte* theirs);
  /// @}
  /// A number for a new table, plan or state, the same on all ranks. Take it before anything can fail, so
  /// that the ranks stay in step.
  [[nodiscard]] std::uint64_t next_number();
  /// Next to an all_gather of addresses, as others may read when it returns, whatever happens here: no rank
  /// leaves the verb before all have ended their reads, also if one throws or the group breaks. agree() or
  /// agree_on() comes after reads; others may follow it.
  void begin_reads() { reads_ = true; }
  /// After that all_gather, if no rank reads.
  void cancel_reads() { reads_ = false; }
  /// agree(), if ranks have read.
  void end_reads() {
    if (reads_) agree();
  }
  /// Keeps memory that other ranks read until the verb has ended, also after an exception.
  void keep(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }
  /// See transport::exchange.
  void exchange(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                device_lane* lane = nullptr);
  [[nodiscard]] bool shares_addresses() const { return group_->shares_addresses(); }
  /// After the last phase: later exceptions are this rank's own.
  void close() noexcept { open_ = false; }

  /// Tells the other ranks of the exception that is being handled.
  void report_failure() noexcept;
  /// Runs a body, with a report of its exception.
  template <class Body>
  auto guarded(Body&& body) {
    try {
      return body();
    } catch (...) {
      report_failure();
      throw;
    }
  }

 private:
  /// An exception of the transport has reached all ranks, or broken the group.
  void phase(function_ref<void(const call_note&)> act);

  std::shared_ptr<transport> group_;
  int rank_;
  call_note note_;
  int phases_ = 0;
  bool open_ = true;
  bool reads_ = false;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace ferry::detail
