// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/trace_text.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Nanoseconds of the clock of the trace.
inline std::int64_t trace_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Work of a device whose times are known once it has ended.
class timed_work {
 public:
  timed_work() = default;
  timed_work(const timed_work&) = delete;
  timed_work& operator=(const timed_work&) = delete;
  virtual ~timed_work() = default;
  [[nodiscard]] virtual bool ended() noexcept = 0;
  /// Waits, then gives begin and end by trace_now's clock. False where the device failed.
  [[nodiscard]] virtual bool times(std::int64_t& begin, std::int64_t& end) noexcept = 0;
};

/// A file in the Trace Event Format, an array of events, which Perfetto and Chrome read. Written in pieces,
/// so that a program that is killed leaves all but the latest events; readers do not need the closing
/// bracket. A child process made by fork writes nothing. Thread-safe. Plain text and lists: every program
/// compiles this, and few use it.
class trace_log {
 public:
  /// Replaces "%p" in the path by the number of the process.
  [[gnu::cold]] explicit trace_log(const char* path) : process_(::getpid()), begin_(trace_now()) {
    const char* const mark = std::strstr(path, "%p");
    if (mark == nullptr)
      std::snprintf(path_, sizeof path_, "%s", path);
    else
      std::snprintf(path_, sizeof path_, "%.*s%lld%s", static_cast<int>(mark - path), path, process_,
                    mark + 2);
  }
  trace_log(const trace_log&) = delete;
  trace_log& operator=(const trace_log&) = delete;
  ~trace_log() = default;

  /// An event of the calling thread.
  [[gnu::cold, gnu::noinline]] void add(const trace_name& name, const char* category, std::int64_t begin,
                                        std::int64_t end, const trace_arguments& arguments) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    listen_for_finalize();
    name_thread();
    write(name, category, begin, end, this_thread(), arguments);
  }

  /// An event of a stream of a device, written once the work has ended.
  [[gnu::cold, gnu::noinline]] void add(std::unique_ptr<timed_work> work, const trace_name& name,
                                        const char* category, int device, std::uint64_t stream) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    listen_for_finalize();
    auto* const added = new pending_event{std::move(work), name, category, track_of(device, stream), nullptr};
    *last_ = added;
    last_ = &added->next;
    if (++pending_ >= many) write_ended(false);
  }

  /// An event of a row of its own, `number` of those with this name, which is no thread's and no stream's.
  /// Events of a row come in order and must not overlap.
  [[gnu::cold, gnu::noinline]] void add(const trace_name& name, const char* category, std::int64_t begin,
                                        std::int64_t end, const trace_arguments& arguments,
                                        std::uint64_t number, const char* row_name) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    listen_for_finalize();
    stream_track& track = *track_of(no_device, number, row_name);
    write(name, category, begin < track.last_end ? track.last_end : begin, end, track.row, arguments);
    track.last_end = end;
  }

  /// Writes what is left. Later events are dropped. With `wait`, waits for the work in flight; without, its
  /// events are dropped.
  [[gnu::cold, gnu::noinline]] void close(bool wait) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    write_ended(wait);
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
    reserve();
    print(any_ ? "\n]\n" : "[]\n");
    flush();
    closed_ = true;
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }

 private:
  /// The events of one stream, in a row of their own. Linux has no thread numbers above 2^22.
  struct stream_track {
    int device;
    std::uint64_t stream;
    long long row;
    std::int64_t last_end;
    bool blocked;
    stream_track* next;
  };
  struct pending_event {
    std::unique_ptr<timed_work> work;
    trace_name name;
    const char* category;
    stream_track* track;
    pending_event* next;
  };
  static constexpr long long first_row = 1ll << 23;
  static constexpr int no_device = -2;
  static constexpr int many = 256;
  static constexpr std::size_t longest = 1024;  ///< of an event's text

  [[nodiscard]] bool is_mine() const { return mark_.is_here(); }
  static long long this_thread() {
    thread_local const long long number = ::gettid();
    return number;
  }

  void listen_for_finalize();  // of trace_home.hpp

  void name_thread() {
    thread_local const trace_log* named = nullptr;
    if (std::exchange(named, this) == this) return;
    char text[32] = "main";
    if (this_thread() != process_) ::pthread_getname_np(::pthread_self(), text, sizeof text);
    write_row_name(this_thread(), text);
  }

  stream_track* track_of(int device, std::uint64_t stream, const char* name = nullptr) {
    long long count = 0;
    for (stream_track* each = tracks_; each != nullptr; each = each->next, ++count)
      if (each->device == device && each->stream == stream) return each;
    tracks_ = new stream_track{device, stream, first_row + count, 0, false, tracks_};
    char text[64];
    std::snprintf(text, sizeof text, "device %d, stream %llu", device,
                  static_cast<unsigned long long>(stream));
    write_row_name(tracks_->row, name == nullptr ? text : name);
    return tracks_;
  }

  /// The work of a stream ends in order. Where two threads share a stream, the second event begins after the
  /// first, because events of a row must not overlap.
  [[gnu::cold, gnu::noinline]] void write_ended(bool wait) {
    for (stream_track* each = tracks_; each != nullptr; each = each->next) each->blocked = false;
    pending_event** at = &first_;
    while (*at != nullptr) {
      pending_event& each = **at;
      stream_track& track = *each.track;
      track.blocked = track.blocked || (!wait && !each.work->ended());
      if (track.blocked) {
        at = &each.next;
        continue;
      }
      std::int64_t begin = 0, end = 0;
      if (each.work->times(begin, end)) {
        begin = begin < track.last_end ? track.last_end : begin;
        end = end < begin ? begin : end;
        track.last_end = end;
        trace_arguments arguments;
        arguments.append_member("device", std::int64_t{track.device});
        arguments.append_member("stream", static_cast<std::int64_t>(track.stream));
        write(each.name, each.category, begin, end, track.row, arguments);
      }
      *at = each.next;
      delete &each;
      --pending_;
    }
    last_ = at;
  }

  void write(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
             long long row, const trace_arguments& arguments) {
    // Earlier than the log: begun by a thread that waited for its making.
    const std::int64_t from = begin < begin_ ? 0 : begin - begin_;
    const std::int64_t length = end < begin ? 0 : end - begin;
    reserve();
    print(
        R"(%s{"ph":"X","pid":%lld,"tid":%lld,"name":"%s","cat":"%s","ts":%lld.%03d,"dur":%lld.%03d,"args":{%s}})",
        any_ ? ",\n" : "[\n", process_, row, name.data, category, static_cast<long long>(from / 1000),
        static_cast<int>(from % 1000), static_cast<long long>(length / 1000), static_cast<int>(length % 1000),
        arguments.data);
    any_ = true;
  }
  void write_row_name(long long row, const char* name) {
    trace_name text;
    text.append_escaped(name);
    reserve();
    print(R"(%s{"ph":"M","pid":%lld,"tid":%lld,"name":"thread_name","args":{"name":"%s"}})",
          any_ ? ",\n" : "[\n", process_, row, text.data);
    any_ = true;
  }

  /// Appends to the buffer, which reserve() has made room in.
  [[gnu::format(printf, 2, 3)]] void print(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int length = std::vsnprintf(text_ + used_, longest, format, values);
    va_end(values);
    if (length > 0)
      used_ += static_cast<std::size_t>(length) < longest ? static_cast<std::size_t>(length) : 0;
  }
  void reserve() {
    if (used_ + longest > sizeof text_) flush();
  }
  [[gnu::cold, gnu::noinline]] void flush() {
    if (file_ < 0) file_ = ::open(path_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    std::size_t written = 0;
    while (file_ >= 0 && written < used_) {
      const auto count = ::write(file_, text_ + written, used_ - written);
      if (count > 0)
        written += static_cast<std::size_t>(count);
      else if (count == 0 || errno != EINTR)
        break;
    }
    if (written < used_) {
      std::fprintf(stderr, "ferry: FERRY_TRACE: can't write %s: %s\n", path_, std::strerror(errno));
      closed_ = true;
    }
    used_ = 0;
  }

  char path_[1024];
  long long process_;
  process_mark mark_;
  std::int64_t begin_;
  std::mutex guard_;
  int file_ = -1;
  bool any_ = false;
  bool closed_ = false;
  bool listens_ = false;
  stream_track* tracks_ = nullptr;  ///< never freed, like the log
  pending_event* first_ = nullptr;
  pending_event** last_ = &first_;
  int pending_ = 0;
  std::size_t used_ = 0;
  char text_[std::size_t{1} << 16];
};

}  // namespace ferry::detail
