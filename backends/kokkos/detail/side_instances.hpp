// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../several_devices.hpp"

#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace ferry::kokkos {

/// An instance of the device for a copy that the calling thread waits for, for its lifetime. Idle ones wait
/// for the next copies until Kokkos::finalize.
class side_instance {
 public:
  using exec_space = Kokkos::DefaultExecutionSpace;

  side_instance() : pool_(detail::until_finalize<idle_instances>()) {
    instance_ = pool_->idle.take_or_make(1, [] {
      const auto lock = several_devices_functions::lock_instances();
      return std::make_shared<exec_space>(Kokkos::Experimental::partition_space(exec_space(), 1)[0]);
    });
  }
  side_instance(const side_instance&) = delete;
  side_instance& operator=(const side_instance&) = delete;
  ~side_instance() { pool_->idle.put(std::move(instance_)); }

  [[nodiscard]] const exec_space& get() const { return *instance_; }

 private:
  struct idle_instances {
    detail::free_list<std::shared_ptr<exec_space>> idle;
  };

  std::shared_ptr<idle_instances> pool_;
  std::shared_ptr<exec_space> instance_;
};

}  // namespace ferry::kokkos
