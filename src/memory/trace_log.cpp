// SPDX-License-Identifier: Apache-2.0
#include "trace_log.hpp"

#include "trace_home.hpp"

#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ferry::detail {

trace_log::trace_log(const char* path) : process_(::getpid()), begin_(trace_now()) {
  const char* const mark = std::strstr(path, "%p");
  if (mark == nullptr)
    std::snprintf(path_, sizeof path_, "%s", path);
  else
    std::snprintf(path_, sizeof path_, "%.*s%lld%s", static_cast<int>(mark - path), path, process_, mark + 2);
}

void trace_log::add(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
                    const trace_arguments& arguments) {
  if (!is_mine()) return;
  const std::lock_guard lock(guard_);
  if (closed_) return;
  listen_for_finalize();
  name_thread();
  write(name, category, begin, end, this_thread(), arguments);
}

void trace_log::add(std::unique_ptr<timed_work> work, const trace_name& name, const char* category,
                    int device, std::uint64_t stream) {
  if (!is_mine()) return;
  const std::lock_guard lock(guard_);
  if (closed_) return;
  listen_for_finalize();
  pending_.push_back({std::move(work), name, category, &track_of(device, stream)});
  if (pending_.size() >= many) write_ended(false);
}

void trace_log::add(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
                    const trace_arguments& arguments, std::uint64_t number, const char* row_name) {
  if (!is_mine()) return;
  const std::lock_guard lock(guard_);
  if (closed_) return;
  listen_for_finalize();
  stream_track& track = track_of(no_device, number, row_name);
  write(name, category, std::max(begin, track.last_end), end, track.row, arguments);
  track.last_end = end;
}

void trace_log::close(bool wait) {
  if (!is_mine()) return;
  const std::lock_guard lock(guard_);
  if (closed_) return;
  write_ended(wait);
  pending_.clear();
  reserve();
  print(has_events_ ? "\n]\n" : "[]\n");
  flush();
  closed_ = true;
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

long long trace_log::this_thread() {
  thread_local const long long number = ::gettid();
  return number;
}

void trace_log::listen_for_finalize() {
  if (listens_ || !Kokkos::is_initialized()) return;
  listens_ = true;
  process_runtime::get().call_at_finalize([](void*) { trace_home::finish(true); });
}

void trace_log::name_thread() {
  thread_local const trace_log* named = nullptr;
  if (std::exchange(named, this) == this) return;
  char text[32] = "main";
  if (this_thread() != process_) ::pthread_getname_np(::pthread_self(), text, sizeof text);
  write_row_name(this_thread(), text);
}

trace_log::stream_track& trace_log::track_of(int device, std::uint64_t stream, const char* name) {
  for (stream_track& track : tracks_)
    if (track.device == device && track.stream == stream) return track;
  const auto row = first_row + static_cast<long long>(tracks_.size());
  stream_track& track = tracks_.emplace_back(stream_track{device, stream, row, 0, false});
  char text[64];
  std::snprintf(text, sizeof text, "device %d, stream %llu", device, static_cast<unsigned long long>(stream));
  write_row_name(row, name == nullptr ? text : name);
  return track;
}

void trace_log::write_ended(bool wait) {
  for (stream_track& track : tracks_) track.blocked = false;
  pending_.remove_if([&](const pending_event& event) {
    stream_track& track = *event.track;
    track.blocked = track.blocked || (!wait && !event.work->ended());
    if (track.blocked) return false;
    std::int64_t begin = 0, end = 0;
    if (event.work->times(begin, end)) {
      begin = std::max(begin, track.last_end);
      end = std::max(begin, end);
      track.last_end = end;
      trace_arguments arguments;
      arguments.append_member("device", std::int64_t{track.device});
      arguments.append_member("stream", static_cast<std::int64_t>(track.stream));
      write(event.name, event.category, begin, end, track.row, arguments);
    }
    return true;
  });
}

void trace_log::write(const trace_name& name, const char* category, std::int64_t begin, std::int64_t end,
                      long long row, const trace_arguments& arguments) {
  // Earlier than the log: begun by a thread that waited for its making.
  const std::int64_t start = std::max(begin - begin_, std::int64_t{0});
  const std::int64_t length = std::max(end - begin, std::int64_t{0});
  reserve();
  print(
      R"(%s{"ph":"X","pid":%lld,"tid":%lld,"name":"%s","cat":"%s","ts":%lld.%03d,"dur":%lld.%03d,"args":{%s}})",
      has_events_ ? ",\n" : "[\n", process_, row, name.data, category, static_cast<long long>(start / 1000),
      static_cast<int>(start % 1000), static_cast<long long>(length / 1000), static_cast<int>(length % 1000),
      arguments.data);
  has_events_ = true;
}

void trace_log::write_row_name(long long row, const char* name) {
  trace_name text;
  text.append_escaped(name);
  reserve();
  print(R"(%s{"ph":"M","pid":%lld,"tid":%lld,"name":"thread_name","args":{"name":"%s"}})",
        has_events_ ? ",\n" : "[\n", process_, row, text.data);
  has_events_ = true;
}

void trace_log::print(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(text_ + text_bytes_, longest, format, values);
  va_end(values);
  if (length > 0)
    text_bytes_ += static_cast<std::size_t>(length) < longest ? static_cast<std::size_t>(length) : 0;
}

void trace_log::reserve() {
  if (text_bytes_ + longest > sizeof text_) flush();
}

void trace_log::flush() {
  if (file_ < 0) file_ = ::open(path_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  std::size_t written = 0;
  while (file_ >= 0 && written < text_bytes_) {
    errno = EFBIG;
    const auto end = ::lseek(file_, 0, SEEK_CUR);  // a pipe has none
    const bool is_full = end >= 0 && static_cast<std::uint64_t>(end) >= largest_file();
    const auto count = is_full ? -1 : ::write(file_, text_ + written, text_bytes_ - written);
    if (count > 0)
      written += static_cast<std::size_t>(count);
    else if (count == 0 || errno != EINTR)
      break;
  }
  if (written < text_bytes_) {
    std::fprintf(stderr, "ferry: FERRY_TRACE: can't write %s: %s\n", path_, std::strerror(errno));
    closed_ = true;
  }
  text_bytes_ = 0;
}

}  // namespace ferry::detail
