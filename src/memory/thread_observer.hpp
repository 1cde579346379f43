// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/thread_observer.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

/// The members of thread_observer and report_meter, for the sources that hold those of an event.
namespace ferry::detail {

/// Sets a mark for its lifetime.
class busy_mark {
 public:
  explicit busy_mark(bool& mark) : mark_(mark) { mark_ = true; }
  busy_mark(const busy_mark&) = delete;
  busy_mark& operator=(const busy_mark&) = delete;
  ~busy_mark() { mark_ = false; }

 private:
  bool& mark_;
};

template <class Event>
bool thread_observer<Event>::is_watched() {
  return innermost() != nullptr;
}

template <class Event>
void thread_observer<Event>::report(const Event& now) {
  for (auto* observer = innermost(); observer != nullptr; observer = observer->outer_) observer->call(now);
}

template <class Event>
thread_observer<Event>::thread_observer(std::function<void(const Event&)> callback)
    : callback_(std::move(callback)), outer_(std::exchange(innermost(), this)) {}

template <class Event>
thread_observer<Event>::~thread_observer() {
  innermost() = outer_;
}

template <class Event>
void thread_observer<Event>::call(const Event& now) {
  if (busy_ || !callback_) return;
  const busy_mark mark(busy_);
  callback_(now);
}

template <class Event>
thread_observer<Event>*& thread_observer<Event>::innermost() {
  return thread_wide<thread_observer>();
}

template <class Event>
report_meter<Event>::report_meter(std::string_view first, std::string_view second, std::size_t bytes)
    : now_{first, second, 0, bytes}, watched_(thread_observer<Event>::is_watched()) {
  if (watched_) last_ = clock::now();
}

template <class Event>
report_meter<Event>::report_meter(std::string_view first, std::string_view second, std::size_t bytes,
                                  clock::time_point begin)
    : now_{first, second, 0, bytes}, watched_(thread_observer<Event>::is_watched()), last_(begin) {}

template <class Event>
void report_meter<Event>::advance(std::size_t bytes_done, clock::time_point time) {
  if (!watched_ || bytes_done >= now_.bytes || bytes_done == now_.bytes_done) return;
  if (bytes_done - now_.bytes_done < now_.bytes / 100 && time - last_ < std::chrono::milliseconds(100))
    return;
  now_.bytes_done = bytes_done;
  last_ = time;
  thread_observer<Event>::report(now_);
}

template <class Event>
void report_meter<Event>::finish() {
  if (!watched_) return;
  now_.bytes_done = now_.bytes;
  thread_observer<Event>::report(now_);
}

}  // namespace ferry::detail
