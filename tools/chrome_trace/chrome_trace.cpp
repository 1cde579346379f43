// SPDX-License-Identifier: Apache-2.0
#include <impl/Kokkos_Profiling_C_Interface.h>

#if defined(FERRY_CHROME_TRACE_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A library for Kokkos Tools (KOKKOS_TOOLS_LIBS) that writes what a program does to a file in the Trace Event
/// Format, an array of events, which Perfetto and Chrome read: regions, kernels, deep copies and fences of each
/// thread, by the host's clock. It knows nothing of ferry, and serves each program with Kokkos.
namespace {

using clock_type = std::chrono::steady_clock;

/// The inside of a JSON string. Bytes that are not printable ASCII become "?", so that a label in another
/// encoding can't break the file.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') safe += '\\';
    safe += letter >= 0x20 && letter < 0x7f ? letter : '?';
  }
  return safe;
}

std::string member(std::string_view key, std::string_view value) {
  return '"' + std::string(key) + "\":\"" + escaped(value) + '"';
}
std::string member(std::string_view key, std::uint64_t value) {
  return '"' + std::string(key) + "\":" + std::to_string(value);
}

/// Work of a thread that has begun and not ended.
struct open_event {
  std::string_view category;  ///< a literal
  std::uint64_t number;
  std::string name, arguments;
  clock_type::time_point begin;
};

std::vector<open_event>& open_events() {
  thread_local std::vector<open_event> events;
  return events;
}

/// The file. A child of fork writes nothing. Written in pieces, so that a program that is killed leaves all but
/// the latest events; readers need no closing bracket. Never destroyed: threads may outlive main. Thread-safe.
class trace_file {
 public:
  static trace_file& get() {
    static trace_file& file = *new trace_file;
    return file;
  }

  [[nodiscard]] bool lists_allocations() const { return has_option("allocations"); }
  [[nodiscard]] bool fences() const { return has_option("fences"); }

  void begin(std::string_view category, std::string_view name, std::string arguments = {},
             std::uint64_t number = 0) {
#if defined(FERRY_CHROME_TRACE_NVTX)
    nvtxRangePushA(std::string(name).c_str());
#endif
    open_events().push_back({category, number, std::string(name), std::move(arguments), clock_type::now()});
  }
  /// Ends the latest event of this category and number.
  void end(std::string_view category, std::uint64_t number = 0) {
    const auto now = clock_type::now();
    auto& events = open_events();
    const auto latest = std::find_if(events.rbegin(), events.rend(), [&](const open_event& event) {
      return event.category == category && event.number == number;
    });
    if (latest == events.rend()) return;
#if defined(FERRY_CHROME_TRACE_NVTX)
    nvtxRangePop();
#endif
    write("X", latest->name,
          member("cat", category) + ",\"ts\":" + time(latest->begin) +
              ",\"dur\":" + time(now, latest->begin) + ",\"args\":{" + latest->arguments + '}');
    events.erase(std::next(latest).base());
  }
  /// A fact without length.
  void mark(std::string_view name) {
    write("i", name, "\"s\":\"t\",\"ts\":" + time(clock_type::now()) + ",\"args\":{}");
  }
  /// Bytes that a memory space holds from here on.
  void count(const char* space, std::string_view label, std::uint64_t bytes, bool grows) {
    if (!lists_allocations()) return;
    std::uint64_t bytes_now = 0;
    {
      const std::lock_guard lock(guard_);
      std::uint64_t& sum = bytes_[space];
      bytes_now = sum = grows ? sum + bytes : sum - std::min(sum, bytes);
    }
    const std::string now = ",\"ts\":" + time(clock_type::now());
    write("C", space, member("cat", "memory") + now + ",\"args\":{" + member("bytes", bytes_now) + '}');
    write("i", grows ? "allocate" : "deallocate",
          "\"s\":\"t\"" + now + ",\"args\":{" + member("label", label) + ',' + member("space", space) + ',' +
              member("bytes", bytes) + '}');
  }

  std::uint64_t next_number() {
    const std::lock_guard lock(guard_);
    return ++numbers_;
  }

  /// Completes the file. Later events are dropped.
  void close() {
    const std::lock_guard lock(guard_);
    if (is_closed_) return;
    text_ += has_events_ ? "\n]\n" : "[]\n";
    flush();
    is_closed_ = true;
    if (file_ != nullptr) std::fclose(file_);
  }

 private:
  trace_file() {
    const char* path = std::getenv("FERRY_CHROME_TRACE");
    path_ = path == nullptr || *path == '\0' ? "kokkos_trace_%p.json" : path;
    if (const auto mark = path_.find("%p"); mark != std::string::npos)
      path_.replace(mark, 2, std::to_string(::getpid()));
    const char* options = std::getenv("FERRY_CHROME_TRACE_OPTIONS");
    if (options != nullptr) options_ = options;
    ::pthread_atfork([] { get().guard_.lock(); }, [] { get().guard_.unlock(); },
                     [] {
                       get().is_closed_ = true;
                       get().guard_.unlock();
                     });
    std::atexit([] { get().close(); });
  }

  [[nodiscard]] bool has_option(const std::string& option) const {
    return (',' + options_ + ',').find(',' + option + ',') != std::string::npos;
  }

  /// Microseconds as a number of JSON.
  [[nodiscard]] static std::string time(clock_type::duration length) {
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
    char text[32];
    std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                  static_cast<int>(nanoseconds % 1000));
    return text;
  }
  [[nodiscard]] static std::string time(clock_type::time_point end, clock_type::time_point begin) {
    return time(end - begin);
  }
  [[nodiscard]] std::string time(clock_type::time_point moment) const { return time(moment - begin_); }

  void write(const char* phase, std::string_view name, const std::string& members) {
    thread_local const auto thread = static_cast<std::uint64_t>(::gettid());
    thread_local bool is_named = false;
    const std::lock_guard lock(guard_);
    if (is_closed_) return;
    if (!std::exchange(is_named, true)) {
      char text[32] = "main";
      if (thread != process_) ::pthread_getname_np(::pthread_self(), text, sizeof text);
      append("M", thread, "thread_name", "\"args\":{" + member("name", text) + '}');
    }
    append(phase, thread, name, members);
    if (text_.size() > std::size_t{1} << 16) flush();
  }
  void append(std::string_view phase, std::uint64_t thread, std::string_view name,
              const std::string& members) {
    text_ += (has_events_ ? ",\n{" : "[\n{") + member("ph", phase) + ',' + member("pid", process_) + ',' +
             member("tid", thread) + ',' + member("name", name) + ',' + members + '}';
    has_events_ = true;
  }
  void flush() {
    if (file_ == nullptr) file_ = std::fopen(path_.c_str(), "we");
    if (file_ == nullptr || std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size() ||
        std::fflush(file_) != 0) {
      std::fprintf(stderr, "ferry_chrome_trace: can't write %s: %s\n", path_.c_str(), std::strerror(errno));
      is_closed_ = true;
    }
    text_.clear();
  }

  std::string path_, options_;
  const std::uint64_t process_ = static_cast<std::uint64_t>(::getpid());
  const clock_type::time_point begin_ = clock_type::now();
  std::mutex guard_;
  std::FILE* file_ = nullptr;
  std::string text_;
  std::map<std::string, std::uint64_t> bytes_;
  std::uint64_t numbers_ = 0;
  bool has_events_ = false;
  bool is_closed_ = false;
};

void begin_kernel(const char* pattern, const char* name, std::uint32_t device, std::uint64_t* number) {
  *number = trace_file::get().next_number();
  trace_file::get().begin(
      "kernel", name, member("pattern", pattern) + ',' + member("device", std::uint64_t{device}), *number);
}

}  // namespace

/// The functions that Kokkos looks for. Without the option "fences" Kokkos does not wait for the device around
/// a kernel, so that the program runs as without the library; a kernel of a device then lasts as long as its
/// launch.
extern "C" {

void kokkosp_request_tool_settings(const std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
  settings->requires_global_fencing = trace_file::get().fences();
}
void kokkosp_init_library(const int, const std::uint64_t, const std::uint32_t,
                          Kokkos_Profiling_KokkosPDeviceInfo*) {
  trace_file::get();
}
void kokkosp_finalize_library() { trace_file::get().close(); }

void kokkosp_push_profile_region(const char* name) { trace_file::get().begin("region", name); }
void kokkosp_pop_profile_region() { trace_file::get().end("region"); }
void kokkosp_profile_event(const char* name) { trace_file::get().mark(name); }

void kokkosp_begin_parallel_for(const char* name, std::uint32_t device, std::uint64_t* number) {
  begin_kernel("for", name, device, number);
}
void kokkosp_begin_parallel_reduce(const char* name, std::uint32_t device, std::uint64_t* number) {
  begin_kernel("reduce", name, device, number);
}
void kokkosp_begin_parallel_scan(const char* name, std::uint32_t device, std::uint64_t* number) {
  begin_kernel("scan", name, device, number);
}
void kokkosp_end_parallel_for(std::uint64_t number) { trace_file::get().end("kernel", number); }
void kokkosp_end_parallel_reduce(std::uint64_t number) { trace_file::get().end("kernel", number); }
void kokkosp_end_parallel_scan(std::uint64_t number) { trace_file::get().end("kernel", number); }

void kokkosp_begin_deep_copy(Kokkos_Profiling_SpaceHandle target, const char* target_label, const void*,
                             Kokkos_Profiling_SpaceHandle source, const char* source_label, const void*,
                             std::uint64_t bytes) {
  trace_file::get().begin("copy", target_label,
                          member("from", source.name) + ',' + member("to", target.name) + ',' +
                              member("source", source_label) + ',' + member("bytes", bytes));
}
void kokkosp_end_deep_copy() { trace_file::get().end("copy"); }

void kokkosp_begin_fence(const char* name, std::uint32_t device, std::uint64_t* number) {
  *number = trace_file::get().next_number();
  trace_file::get().begin("fence", name, member("device", std::uint64_t{device}), *number);
}
void kokkosp_end_fence(std::uint64_t number) { trace_file::get().end("fence", number); }

void kokkosp_allocate_data(Kokkos_Profiling_SpaceHandle space, const char* label, const void*,
                           std::uint64_t bytes) {
  trace_file::get().count(space.name, label, bytes, true);
}
void kokkosp_deallocate_data(Kokkos_Profiling_SpaceHandle space, const char* label, const void*,
                             std::uint64_t bytes) {
  trace_file::get().count(space.name, label, bytes, false);
}
}
