// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>

namespace ferry::detail {

/// How batches reach the user's instance, for pipelines that don't know its type.
class lane {
 public:
  lane() = default;
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;
  virtual ~lane() = default;

  /// True if batches travel. Else the slots are used where they were made.
  [[nodiscard]] virtual bool travels() const = 0;
  /// The memory of a slot.
  virtual void place(slot& batch_slot, std::size_t index) = 0;
  /// Enqueues the transfer of `rows` rows and records its end; called by the mover's thread only.
  virtual std::int64_t send(slot& batch_slot, const slot_layout& layout, std::int64_t rows) = 0;
  /// Orders later work of the user's instance after an event.
  virtual void order(event& before) = 0;
  /// Throws if batches can't be given to the user's instance now.
  virtual void require_usable() const {}
  /// The end of the work that the user's instance has been given; null if it has ended.
  [[nodiscard]] virtual event_handle mark() = 0;
  /// The error of detached work of the user's instance, see ticket::detach; null for none.
  [[nodiscard]] virtual std::exception_ptr take_finding() { return nullptr; }
  /// Waits for all work on the slots and releases the instances, which may not outlive Kokkos.
  virtual void close() noexcept = 0;
};

/// The memory space of batches for an execution space.
template <class Exec>
using batch_space_of = std::conditional_t<is_host_exec<Exec>, pinned_space, device_space>;

/// The lane to an instance, with memory for `slots` slots.
template <ExecutionSpace Exec>
std::unique_ptr<lane> make_lane(const Exec& exec, const slot_layout& layout, std::size_t slots);

}  // namespace ferry::detail
