// SPDX-License-Identifier: Apache-2.0
#include "processors.hpp"

#include <memory>

namespace ferry::detail {

processor_set processor_set::of_process() {
  struct closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  processor_set processors;
  const std::unique_ptr<DIR, closer> tasks(opendir("/proc/self/task"));
  if (tasks == nullptr) return processors;
  while (const dirent* task = readdir(tasks.get())) {
    const auto id = static_cast<pid_t>(std::strtol(task->d_name, nullptr, 10));
    if (id > 0) processors.add(of_thread(id));
  }
  return processors;
}

processor_set processor_set::of_thread(pid_t id) {
  processor_set processors;
  if (sched_getaffinity(id, sizeof processors.bits_, reinterpret_cast<cpu_set_t*>(processors.bits_.data())) !=
      0)
    processors.bits_ = {};  // the thread has just ended
  return processors;
}

void processor_set::take() const {
  if (*this != processor_set())
    static_cast<void>(sched_setaffinity(0, sizeof bits_, reinterpret_cast<const cpu_set_t*>(bits_.data())));
}

void processor_set::add(const processor_set& added) {
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= added.bits_[i];
}

}  // namespace ferry::detail
