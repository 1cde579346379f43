// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace_text.hpp"

#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/timed_work.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace ferry::detail {

/// A file in the Trace Event Format, an array of events, which Perfetto and Chrome read. Written in pieces,
/// so that a program that is killed leaves all but the latest events; readers do not need the closing
/// bracket. A child process made by fork writes nothing. Thread-safe.
class trace_log {
 public:
  /// Replaces "%p" in the path by the number of the process.
  explicit trace_log(const char* path);
  trace_log(const trace_log&) = delete;
  trace_log& operator=(const trace_log&) = delete;
  ~trace_log() = default;

  /// An event of the calling thread.
  void add(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
           const trace_arguments& arguments);

  /// An event of a stream of a device, written once the work has ended.
  void add(std::unique_ptr<timed_work> work, const trace_name& name, const char* category, int device,
           std::uint64_t stream);

  /// An event of a row of its own, `number` of those with this name, which is no thread's and no stream's.
  /// Events of a row come in order and must not overlap.
  void add(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
           const trace_arguments& arguments, std::uint64_t number, const char* row_name);

  /// Writes what is left. Later events are dropped. With `wait`, waits for the work in flight; without, its
  /// events are dropped.
  void close(bool wait);

 private:
  /// The events of one stream, in a row of their own. Linux has no thread numbers above 2^22.
  struct stream_track {
    int device;
    std::uint64_t stream;
    long long row;
    std::int64_t last_end;
    bool blocked;
  };
  struct pending_event {
    std::unique_ptr<timed_work> work;
    trace_name name;
    const char* category;
    stream_track* track;
  };
  static constexpr long long first_row = 1ll << 23;
  static constexpr int no_device = -2;
  static constexpr std::size_t many = 256;
  static constexpr std::size_t longest = 1024;  ///< of an event's text

  [[nodiscard]] bool is_mine() const { return mark_.is_here(); }
  static long long this_thread();

  void listen_for_finalize();
  void name_thread();
  stream_track& track_of(int device, std::uint64_t stream, const char* name = nullptr);

  /// The work of a stream ends in order. Where two threads share a stream, the second event begins after the
  /// first, because events of a row must not overlap.
  void write_ended(bool wait);
  void write(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
             long long row, const trace_arguments& arguments);
  void write_row_name(long long row, const char* name);

  /// Appends to the buffer, which reserve() has made room in.
  [[gnu::format(printf, 2, 3)]] void print(const char* format, ...);
  void reserve();
  void flush();

  char path_[1024];
  long long process_;
  process_mark mark_;
  std::int64_t begin_;
  std::mutex guard_;
  int file_ = -1;
  bool has_events_ = false;
  bool closed_ = false;
  bool listens_ = false;
  std::list<stream_track> tracks_;
  std::list<pending_event> pending_;
  std::size_t text_bytes_ = 0;
  char text_[std::size_t{1} << 16];
};

}  // namespace ferry::detail
