// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/communicator/detail/instance_lane.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

/// Buffers of rows that travel between ranks.
namespace ferry::detail {

/// The space of such buffers: near the ranks' kernels, but for rows that come from host memory and go there
/// in a program with devices.
template <class Exec, class... Spaces>
using payload_space = std::conditional_t<!is_host_exec<Exec> && (Spaces::is_host_accessible && ...),
                                         pinned_space, near_space<Exec>>;

/// A buffer for work of `exec`: on its device from the cache of the engine, because to allocate and free
/// device memory waits for the device. No work may be in flight when it ends, also after an exception.
template <class T, class Space, class Exec, class... Sizes>
tensor<T, Space> payload([[maybe_unused]] const Exec& exec, const char* label, Sizes... sizes) {
  if constexpr (Space::is_host_accessible) {
    return tensor<T, Space>(label, sizes...);
  } else {
    const std::array<std::size_t, sizeof...(Sizes)> extents{static_cast<std::size_t>(sizes)...};
    const auto shape = ferry::shape<dynamic_rank>::make(extents, label, sizeof(T));
    auto memory = engine::get(exec)->device_scratch(shape.size() * sizeof(T));
    T* const data = static_cast<T*>(memory.get());
    return tensor<T, Space>(label, shape, data, std::move(memory));
  }
}

/// Waits for an instance at the end of a scope.
template <class Exec>
struct fence_at_exit {
  const Exec& exec;

  explicit fence_at_exit(const Exec& instance) : exec(instance) {}
  fence_at_exit(const fence_at_exit&) = delete;
  fence_at_exit& operator=(const fence_at_exit&) = delete;
  ~fence_at_exit() {
    try {
      fence();
    } catch (...) {  // the device failed: nothing of it runs any more
    }
  }
  void fence() const {
    static const std::string label = "ferry::distributed::payload";
    execution_backend<Exec>::fence(exec, label);
  }
};

/// Waits for an instance if a block ends by an exception.
template <class Exec>
struct fence_on_exception {
  const Exec& exec;
  int exceptions = std::uncaught_exceptions();

  explicit fence_on_exception(const Exec& instance) : exec(instance) {}
  fence_on_exception(const fence_on_exception&) = delete;
  fence_on_exception& operator=(const fence_on_exception&) = delete;
  ~fence_on_exception() {
    if (std::uncaught_exceptions() > exceptions) fence_at_exit<Exec>{exec};
  }
};

/// True if both instances are of the device that has a buffer in Space.
template <class Space, class Exec>
bool share_home([[maybe_unused]] const Exec& first, [[maybe_unused]] const Exec& second) {
  if constexpr (Space::is_host_accessible || is_host_exec<Exec>)
    return true;
  else
    return execution_backend<Exec>::device_of(first) == execution_backend<Exec>::device_of(second);
}

/// Copies between buffers of the devices of two instances. Blocks.
template <class Exec>
void copy_home(const Exec& to_exec, void* target, const Exec& from_exec, const void* source,
               std::size_t bytes) {
  if (bytes == 0) return;
  const fence_at_exit<Exec> waits(to_exec);
  execution_backend<Exec>::copy_from_device_async(to_exec, "ferry::distributed::copy_home", target, source,
                                                  execution_backend<Exec>::device_of(from_exec), bytes);
  waits.fence();
}

/// exchange of buffers in Space: those of device memory have been made by `sends` and lie on its device, and
/// those for what comes on that of `takes`. Blocks.
template <class Space, class Exec>
void exchange_payload(collective& call, [[maybe_unused]] const Exec& sends,
                      [[maybe_unused]] const Exec& takes, std::span<const outgoing_part> outgoing,
                      std::span<const incoming_part> incoming) {
  if constexpr (Space::is_host_accessible || device_is_host<Exec>) {
    call.exchange(outgoing, incoming);
  } else {
    instance_lane<Exec> lane(sends, takes);
    lane.publish();
    call.exchange_devices(outgoing, incoming, lane);
  }
}

}  // namespace ferry::detail
