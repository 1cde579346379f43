// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../allocation.hpp"

#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace ferry::host {

/// As touch_pages, with threads that start(function) returns.
template <class StartThread>
void touch_pages_by(const StartThread& start, void* data, std::size_t bytes, detail::progress_meter& meter) {
  auto* first = static_cast<volatile char*>(data);
  // About two hundred pieces of whole huge pages.
  const std::size_t piece = (bytes / 200 / huge_page_bytes + 1) * huge_page_bytes;
  const std::size_t page = page_bytes();
  std::atomic<std::size_t> next{0}, done{0};
  const auto touch_one = [&] {
    const std::size_t begin = next.fetch_add(piece, std::memory_order_relaxed);
    if (begin >= bytes) return false;
    const std::size_t end = std::min(bytes, begin + piece);
    for (std::size_t place = begin; place < end; place += page) first[place] = 0;
    done.fetch_add(end - begin, std::memory_order_relaxed);
    return true;
  };
  const std::size_t threads =
      std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), (bytes + piece - 1) / piece);
  const auto touch_all = [&]() noexcept {
    while (touch_one()) {
    }
  };
  // An observer of the progress may fork: its child has none of the threads.
  const std::unique_ptr<std::vector<std::jthread>, detail::delete_in_own_process> workers(
      new std::vector<std::jthread>);
  try {
    workers->reserve(threads);
    for (std::size_t t = 1; t < threads; ++t) workers->push_back(start(touch_all));
  } catch (const std::system_error&) {  // a limit on threads is not a lack of memory
  } catch (const std::bad_alloc&) {     // this thread touches all pages by itself, too
  }
  try {
    while (touch_one()) meter.advance(done.load(std::memory_order_relaxed));
  } catch (...) {
    next.store(bytes, std::memory_order_relaxed);
    throw;
  }
}

}  // namespace ferry::host
