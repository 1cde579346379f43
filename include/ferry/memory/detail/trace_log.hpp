#pragma once

#include <ferry/memory/detail/trace_text.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <Kokkos_Core.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
/// bracket. A child process made by fork writes nothing. Thread-safe.
class trace_log {
 public:
  /// Replaces "%p" in the path by the number of the process.
  explicit trace_log(std::string path) : path_(std::move(path)), process_(::getpid()), begin_(trace_now()) {
    if (const auto at = path_.find("%p"); at != std::string::npos)
      path_.replace(at, 2, std::to_string(process_));
  }
  trace_log(const trace_log&) = delete;
  trace_log& operator=(const trace_log&) = delete;
  ~trace_log() = default;

  /// An event of the calling thread. `arguments` are members of a JSON object.
  void add(std::string_view name, const char* category, std::int64_t begin, std::int64_t end,
           std::string_view arguments) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    listen_for_finalize();
    name_thread();
    write(name, category, begin, end, this_thread(), arguments);
  }

  /// An event of a stream of a device, written once the work has ended.
  void add(std::unique_ptr<timed_work> work, std::string_view name, const char* category, int device,
           std::uint64_t stream, std::string_view arguments) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (closed_) return;
    listen_for_finalize();
    pending_.push_back(
        {std::move(work), std::string(name), category, track_of(device, stream), std::string(arguments)});
    if (pending_.size() >= many) write_ended(false);
  }

  /// Writes what is left. Later events are dropped. With `wait`, waits for the work in flight; without, its
  /// events are dropped.
  void close(bool wait) {
    if (!is_mine()) return;
    const std::lock_guard lock(guard_);
    if (std::exchange(closed_, true)) return;
    write_ended(wait);
    pending_.clear();
    text_ += text_.empty() && file_ == nullptr ? "[]\n" : "\n]\n";
    flush();
    if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  }

 private:
  struct pending_event {
    std::unique_ptr<timed_work> work;
    std::string name;
    const char* category;
    std::size_t track;
    std::string arguments;
  };
  /// The events of one stream, in a row of their own. Linux has no thread numbers above 2^22.
  struct stream_track {
    int device;
    std::uint64_t stream;
    std::int64_t last_end = 0;
    bool blocked = false;
  };
  static constexpr std::int64_t first_track = std::int64_t{1} << 23;
  static constexpr std::size_t many = 256;
  static constexpr std::size_t buffer = std::size_t{1} << 16;

  [[nodiscard]] bool is_mine() const { return ::getpid() == process_; }
  static std::int64_t this_thread() {
    thread_local const std::int64_t number = ::gettid();
    return number;
  }

  void listen_for_finalize();

  void name_thread() {
    thread_local const trace_log* named = nullptr;
    if (std::exchange(named, this) == this) return;
    char name[32] = "";
    if (this_thread() == process_ || ::pthread_getname_np(::pthread_self(), name, sizeof name) != 0)
      std::snprintf(name, sizeof name, "main");
    write_name("thread_name", this_thread(), name);
  }

  std::size_t track_of(int device, std::uint64_t stream) {
    for (std::size_t i = 0; i < tracks_.size(); ++i)
      if (tracks_[i].device == device && tracks_[i].stream == stream) return i;
    tracks_.push_back({device, stream});
    write_name("thread_name", first_track + static_cast<std::int64_t>(tracks_.size()) - 1,
               "device " + std::to_string(device) + ", stream " + std::to_string(stream));
    return tracks_.size() - 1;
  }

  /// The work of a stream ends in order. Where two threads share a stream, the second event begins after the
  /// first, because events of a row must not overlap.
  void write_ended(bool wait) {
    for (auto& each : tracks_) each.blocked = false;
    for (auto& each : pending_) {
      stream_track& track = tracks_[each.track];
      track.blocked = track.blocked || (!wait && !each.work->ended());
      std::int64_t begin = 0, end = 0;
      if (track.blocked) continue;
      if (each.work->times(begin, end)) {
        begin = begin < track.last_end ? track.last_end : begin;
        end = end < begin ? begin : end;
        track.last_end = end;
        std::string arguments =
            "\"device\":" + std::to_string(track.device) + ",\"stream\":" + std::to_string(track.stream);
        if (!each.arguments.empty()) arguments.append(",").append(each.arguments);
        write(each.name, each.category, begin, end, first_track + static_cast<std::int64_t>(each.track),
              arguments);
      }
      each.work = nullptr;
    }
    std::erase_if(pending_, [](const pending_event& each) { return each.work == nullptr; });
  }

  void write(std::string_view name, const char* category, std::int64_t begin, std::int64_t end,
             std::int64_t thread, std::string_view arguments) {
    open_event("X", name, thread);
    text_.append(",\"cat\":\"").append(category).append("\",\"ts\":");
    append_microseconds(text_, begin - begin_);
    text_.append(",\"dur\":");
    append_microseconds(text_, end - begin);
    text_.append(",\"args\":{").append(arguments).append("}}");
    if (text_.size() >= buffer) flush();
  }
  void write_name(const char* what, std::int64_t thread, std::string_view name) {
    open_event("M", what, thread);
    text_.append(",\"args\":{\"name\":\"");
    append_escaped(text_, name);
    text_.append("\"}}");
  }
  void open_event(const char* phase, std::string_view name, std::int64_t thread) {
    text_.append(file_ == nullptr && text_.empty() ? "[\n" : ",\n");
    text_.append("{\"ph\":\"").append(phase).append("\",\"pid\":").append(std::to_string(process_));
    text_.append(",\"tid\":").append(std::to_string(thread)).append(",\"name\":\"");
    append_escaped(text_, name);
    text_.append("\"");
  }
  void flush() {
    if (file_ == nullptr && !broken_) {
      file_ = std::fopen(path_.c_str(), "we");
      if (file_ == nullptr) std::fprintf(stderr, "ferry: FERRY_TRACE: can't write %s\n", path_.c_str());
      broken_ = file_ == nullptr;
    }
    if (file_ != nullptr &&
        (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size() || std::fflush(file_) != 0) &&
        !std::exchange(broken_, true))
      std::fprintf(stderr, "ferry: FERRY_TRACE: %s is incomplete\n", path_.c_str());
    text_.clear();
    if (file_ == nullptr) closed_ = true;
  }

  std::string path_;
  std::int64_t process_;
  std::int64_t begin_;
  std::mutex guard_;
  std::FILE* file_ = nullptr;
  bool broken_ = false;
  bool closed_ = false;
  bool listens_ = false;
  std::string text_;
  std::vector<stream_track> tracks_;
  std::vector<pending_event> pending_;
};

/// What a profiler offers for ranges of host code: begin and end nest in a thread.
struct range_annotator {
  void (*begin)(const char* name);
  void (*end)();
};

/// Who wants to know what ferry does besides Kokkos Tools: a trace where the variable FERRY_TRACE names a
/// file, and the annotator of a profiler where a backend has one. Without either, `listeners` is 0 and
/// everything that would be reported costs one load.
struct trace_home {
  static constexpr unsigned to_log = 1, to_ranges = 2;

  std::atomic<unsigned> listeners{0};
  std::atomic<trace_log*> log{nullptr};  ///< never destroyed: other threads may be using it
  std::atomic<const range_annotator*> ranges{nullptr};

  trace_home() {
    const char* path = std::getenv("FERRY_TRACE");
    if (path == nullptr || *path == '\0') return;
    log = new trace_log(path);
    listeners = to_log;
    std::atexit([] { finish(false); });
  }

  static trace_home& get() {
    static trace_home& one = process_wide<trace_home>();
    return one;
  }
  void annotate_by(const range_annotator* annotator) {
    ranges = annotator;
    listeners.fetch_or(to_ranges);
  }
  /// Ends the trace: by Kokkos::finalize, or else at exit, where the device may be gone.
  static void finish(bool wait) {
    trace_home& home = get();
    home.listeners.fetch_and(~to_log);
    if (trace_log* const log = home.log) log->close(wait);
  }
};

inline void trace_log::listen_for_finalize() {
  if (listens_ || !Kokkos::is_initialized()) return;
  listens_ = true;
  finalize_list::get().add([] { trace_home::finish(true); });
}

/// Who listens; a mask of trace_home's.
inline unsigned trace_listeners() noexcept {
  static const std::atomic<unsigned>& now = trace_home::get().listeners;
  return now.load(std::memory_order_acquire);
}

}  // namespace ferry::detail
