// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/owned.hpp>

#include <dirent.h>
#include <sched.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace ferry::detail {

/// A set of processors that threads may run on; empty where the system does not tell.
class processor_set {
 public:
  /// The processors of all threads of the process. Those of the calling thread are too few: an OpenMP library
  /// binds the thread of main() to one place, and new threads inherit the binding. Together, the threads of a
  /// host execution space have the processors that the user gave the process.
  FERRY_LAZY static processor_set of_process();
  /// The processors of one thread; 0 for the calling thread.
  FERRY_LAZY static processor_set of_thread(pid_t id = 0);

  /// Lets the calling thread run on the processors of the set. Changes nothing for an empty set.
  FERRY_LAZY void take() const;

  FERRY_LAZY void add(const processor_set& others);
  [[nodiscard]] bool operator==(const processor_set&) const = default;

 private:
  // More than any Linux kernel supports.
  alignas(cpu_set_t) std::array<unsigned long, 1024> bits_{};
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY processor_set processor_set::of_process() {
  struct closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  processor_set all;
  const owned<DIR, closer> tasks(opendir("/proc/self/task"));
  if (tasks == nullptr) return all;
  while (const dirent* task = readdir(tasks.get())) {
    const auto id = static_cast<pid_t>(std::strtol(task->d_name, nullptr, 10));
    if (id > 0) all.add(of_thread(id));
  }
  return all;
}

FERRY_LAZY processor_set processor_set::of_thread(pid_t id) {
  processor_set own;
  if (sched_getaffinity(id, sizeof own.bits_, reinterpret_cast<cpu_set_t*>(own.bits_.data())) != 0)
    own.bits_ = {};  // the thread has just ended
  return own;
}

FERRY_LAZY void processor_set::take() const {
  if (*this != processor_set())
    static_cast<void>(sched_setaffinity(0, sizeof bits_, reinterpret_cast<const cpu_set_t*>(bits_.data())));
}

FERRY_LAZY void processor_set::add(const processor_set& others) {
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= others.bits_[i];
}

#endif

}  // namespace ferry::detail
