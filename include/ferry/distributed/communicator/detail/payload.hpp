// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/communicator/detail/instance_lane.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Buffers of rows that travel between ranks. Indices and counts travel in wire_space, where the host reads
/// them.
namespace ferry::detail {

/// The space of such buffers: that of the ranks' devices if one of the arrays that the rows come from or go
/// to is in device memory, else that of the wire.
template <class Exec, class... Spaces>
using payload_space = std::conditional_t<!is_host_exec<Exec> && (!Spaces::is_host_accessible || ...),
                                         device_space, wire_space<Exec>>;

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
  if constexpr (Space::is_host_accessible)
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

/// Rows of a buffer of `exec`, or their copy on the device of `there`, which `copy` owns.
template <class T, class Space, class Exec>
tensor_slice<const T, Space> rows_near([[maybe_unused]] const Exec& exec,
                                       [[maybe_unused]] const Exec& shard_exec,
                                       const tensor_slice<const T, Space>& rows,
                                       [[maybe_unused]] tensor<T, Space>& copy) {
  if constexpr (!Space::is_host_accessible)
    if (!share_home<Space>(exec, shard_exec)) {
      copy = payload<T, Space>(shard_exec, "rows near a shard", rows.rows(), rows.width());
      copy_home(shard_exec, copy.data(), exec, rows.data(), copy.size() * sizeof(T));
      return copy.first(copy.rows());
    }
  return rows;
}

/// The exchange of device memory with ranks of other processes: through host memory. Parts that are the same
/// for several ranks, one after the other, leave the device once.
template <class Exec>
void exchange_by_host(collective& call, const Exec& sends, const Exec& takes,
                      std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming) {
  static constexpr const char* label = "ferry::distributed::by_host";
  using backend = execution_backend<Exec>;
  const auto is_new = [&](std::size_t r) { return r == 0 || outgoing[r].data != outgoing[r - 1].data; };
  std::size_t bytes_out = 0, bytes_in = 0;
  for (std::size_t r = 0; r < outgoing.size(); ++r) bytes_out += outgoing[r].bytes;
  for (const incoming_part& part : incoming) bytes_in += part.bytes;
  tensor<std::byte, pinned_space> leaving("values for ranks", bytes_out),
      arrived("values of ranks", bytes_in);
  std::vector<outgoing_part> parts(outgoing.size());
  std::vector<incoming_part> targets(incoming.size());
  {
    const fence_at_exit<Exec> waits(sends);
    std::byte* next_out = leaving.data();
    for (std::size_t r = 0; r < outgoing.size(); ++r) {
      if (outgoing[r].bytes == 0) continue;
      if (!is_new(r) && parts[r - 1].bytes == outgoing[r].bytes) {
        parts[r] = parts[r - 1];
        continue;
      }
      backend::copy_async(sends, label, next_out, outgoing[r].data, outgoing[r].bytes);
      parts[r] = {next_out, outgoing[r].bytes};
      next_out += outgoing[r].bytes;
    }
    waits.fence();
  }
  std::byte* next_in = arrived.data();
  for (std::size_t r = 0; r < incoming.size(); ++r) {
    targets[r] = {next_in, incoming[r].bytes};
    next_in += incoming[r].bytes;
  }
  call.exchange(parts, targets);
  const fence_at_exit<Exec> waits(takes);
  for (std::size_t r = 0; r < incoming.size(); ++r)
    if (incoming[r].bytes != 0)
      backend::copy_async(takes, label, incoming[r].data, targets[r].data, incoming[r].bytes);
  waits.fence();
}

/// Leaks the memory: messages of a group that has broken may still write to it.
template <class Memory>
void leak(Memory&& memory) {
  static_cast<void>(new std::remove_cvref_t<Memory>(std::forward<Memory>(memory)));
}

/// As above, if messages may lie in memory of devices. They have buffers of their own, which outlive the
/// call if the group breaks.
template <class Exec>
void exchange_by_messages(collective& call, const Exec& sends, const Exec& takes,
                          std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming) {
  static constexpr const char* label = "ferry::distributed::by_messages";
  using backend = execution_backend<Exec>;
  const auto self = static_cast<std::size_t>(call.rank());
  std::size_t bytes_out = 0, bytes_in = 0;
  for (std::size_t r = 0; r < outgoing.size(); ++r) {
    if (r == self) continue;
    bytes_out += outgoing[r].bytes;
    bytes_in += incoming[r].bytes;
  }
  auto leaving = payload<std::byte, device_space>(sends, "values for ranks", bytes_out);
  auto arrived = payload<std::byte, device_space>(takes, "values of ranks", bytes_in);
  std::vector<outgoing_part> parts(outgoing.size());
  std::vector<incoming_part> targets(incoming.size());
  copy_home(takes, incoming[self].data, sends, outgoing[self].data, outgoing[self].bytes);
  {
    const fence_at_exit<Exec> waits(sends);
    const std::byte* next_out = leaving.data();
    for (std::size_t r = 0; r < outgoing.size(); ++r) {
      if (r == self || outgoing[r].bytes == 0) continue;
      backend::copy_async(sends, label, const_cast<std::byte*>(next_out), outgoing[r].data,
                          outgoing[r].bytes);
      parts[r] = {next_out, outgoing[r].bytes};
      next_out += outgoing[r].bytes;
    }
    waits.fence();
  }
  std::byte* next_in = arrived.data();
  for (std::size_t r = 0; r < incoming.size(); ++r) {
    if (r == self) continue;
    targets[r] = {next_in, incoming[r].bytes};
    next_in += incoming[r].bytes;
  }
  try {
    const typename backend::device_guard guard(takes);
    call.exchange_device_memory(parts, targets);
  } catch (const communication_error&) {
    leak(std::move(leaving));
    leak(std::move(arrived));
    throw;
  }
  const fence_at_exit<Exec> waits(takes);
  for (std::size_t r = 0; r < incoming.size(); ++r)
    if (targets[r].bytes != 0)
      backend::copy_async(takes, label, incoming[r].data, targets[r].data, targets[r].bytes);
  waits.fence();
}

/// exchange of buffers in Space: those of device memory have been made by `sends` and lie on its device, and
/// those for what comes on that of `takes`. Blocks.
template <class Space, class Exec>
void exchange_payload(collective& call, [[maybe_unused]] const Exec& sends,
                      [[maybe_unused]] const Exec& takes, std::span<const outgoing_part> outgoing,
                      std::span<const incoming_part> incoming) {
  if constexpr (Space::is_host_accessible) {
    call.exchange(outgoing, incoming);
  } else if (call.passes_device_memory()) {
    instance_lane<Exec> lane(sends, takes);
    lane.publish();
    call.exchange_devices(outgoing, incoming, lane);
  } else if (call.sends_device_memory()) {
    exchange_by_messages(call, sends, takes, outgoing, incoming);
  } else {
    exchange_by_host(call, sends, takes, outgoing, incoming);
  }
}

}  // namespace ferry::detail
