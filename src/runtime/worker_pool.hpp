// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "processors.hpp"
#include "worker_thread.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

namespace ferry::detail {

/// Threads that help the callers of verbs, made when needed. They are not the threads of a host execution
/// space, because they wait for the device. Kokkos locks a host instance while it computes, so other host
/// kernels would wait for the device as well, and the device may wait for one of these: a deadlock.
///
/// A thread belongs to one worker team until it is given back. Nothing is queued, so no worker team waits for
/// another. Kokkos::finalize destroys the pool. A child process has none of the threads, so its callers work
/// alone.
class worker_pool {
 public:
  static std::shared_ptr<worker_pool> get();

  worker_pool() = default;
  /// With threads that run on these processors, instead of those of the process.
  explicit worker_pool(const processor_set& processors) : processors_(processors) {}
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;
  /// A child leaves the threads alone, and the locks that they may have held.
  ~worker_pool() {
    if (!has_threads())
      for (auto& thread : threads_) process_identity::get().abandon(thread.release());
  }

  /// A list of at most `count` threads, awake or waking up. The pool has at most `most` threads, but a
  /// worker team gets at least one. The list is shorter if the system starts no more threads. Thread-safe.
  [[nodiscard]] worker_thread* hire(int count, int most);
  void give_back(worker_thread* hired);

  /// Number of threads made so far.
  [[nodiscard]] std::size_t size() const;
  /// False in a child process.
  [[nodiscard]] bool has_threads() const noexcept { return process_.is_here(); }

 private:
  worker_thread* make();

  mutable std::mutex guard_;
  worker_thread* idle_ = nullptr;  ///< the last to work comes first: it may be awake
  processor_set processors_;
  std::vector<std::unique_ptr<worker_thread>> threads_;
  process_mark process_;
};

}  // namespace ferry::detail
