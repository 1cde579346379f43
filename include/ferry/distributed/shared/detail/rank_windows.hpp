// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/share.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Exchanges of memory of devices: from device to device between threads, through memory that processes of
/// one machine share, else through page-locked host memory.
namespace ferry::detail {

/// Memory of this process for what a rank sends, and the name by which the others open it.
struct window_memory {
  std::shared_ptr<std::byte> data;
  std::size_t bytes = 0;
  shared_handle handle;
};

/// Functions for windows in a memory space. They throw as tensor, share and open_shared do.
struct window_functions {
  window_memory (*make)(std::size_t bytes, int device);
  std::shared_ptr<std::byte> (*open)(const shared_handle& handle, int device);
};
template <MemorySpace Space>
window_functions window_functions_of() {
  return {[](std::size_t bytes, int device) {
            auto memory =
                std::make_shared<tensor<std::byte, Space>>("window of a rank", ferry::device{device}, bytes);
            std::byte* const data = memory->data();
            auto handle = share(*memory);
            return window_memory{{std::move(memory), data}, bytes, handle};
          },
          [](const shared_handle& handle, int device) {
            auto memory = std::make_shared<tensor<std::byte, Space>>(
                open_shared<std::byte, Space>(handle, ferry::device{device}));
            std::byte* const data = memory->data();
            return std::shared_ptr<std::byte>(std::move(memory), data);
          }};
}

/// The windows of a group of processes of one rank each. A rank packs its parts into a half of its window,
/// the ranks exchange notes, and each copies its parts out of the windows of the others. It packs the next
/// parts into the other half, so the notes after an exchange end the reads of that exchange. A window grows
/// by new memory with another number, which the others open at its first use. Windows are of the device of
/// the first exchange. The group keeps them.
class rank_windows {
 public:
  explicit rank_windows(int ranks) : opened_(static_cast<std::size_t>(ranks)) {}
  rank_windows(const rank_windows&) = delete;
  rank_windows& operator=(const rank_windows&) = delete;

  /// False, on all ranks from then on, if a rank could not make its window or open that of another one.
  [[nodiscard]] bool serve() const { return serve_; }
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  /// Finds room for the parts that leave this rank. False without memory, and for another device: then the
  /// ranks exchange notes all the same.
  bool reserve(int rank, std::span<const outgoing_part> outgoing, int device,
               const window_functions& functions);
  /// Room for part i in the window of this rank; null if the part does not leave, or is the one before.
  [[nodiscard]] std::byte* part(std::size_t i) const;
  /// The ranks exchange notes, and open memory that is new. False, on all ranks alike, if one has no room, or
  /// can't open.
  bool exchange_notes(collective& call, const window_functions& functions);
  /// After that, part i of another rank.
  [[nodiscard]] const std::byte* part_of(int rank, std::size_t i) const;

 private:
  struct opened_window {
    std::shared_ptr<std::byte> data;  ///< null for this rank's
    std::uint64_t number = 0;         ///< of the memory that all others have opened
    std::vector<std::int64_t> begin;  ///< of the parts of the last exchange
  };
  void close(const std::string& why);

  bool serve_ = true;
  std::string why_not_;
  int device_ = -1;
  window_memory memory_;
  std::uint64_t number_ = 0;
  std::size_t half_ = 0;             ///< that is packed next
  bool has_room_ = false;            ///< for the parts of this exchange
  std::string trouble_;              ///< of this rank: it can't share memory
  std::vector<std::int64_t> begin_;  ///< of the parts in the window
  std::vector<bool> is_packed_;      ///< false for parts that do not leave, and for those that repeat one
  std::vector<opened_window> opened_;
};

/// The windows of the group of a call; null if its ranks are not processes of one rank each, and for many
/// ranks.
[[nodiscard]] rank_windows* rank_windows_of(const collective& call);

/// exchange through windows in Space. False, on all ranks alike, if they do not serve. Blocks.
template <class Space, class Exec>
bool exchange_by_windows(collective& call, rank_windows& windows, const Exec& sends, const Exec& takes,
                         std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming) {
  using backend = execution_backend<Exec>;
  static constexpr const char* label = "ferry::distributed::windows";
  const window_functions functions = window_functions_of<Space>();
  if (windows.reserve(call.rank(), outgoing, backend::device_of(sends), functions)) {
    const fence_at_exit<Exec> waits(sends);
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      if (std::byte* const target = windows.part(i))
        backend::copy_async(sends, label, target, outgoing[i].data, outgoing[i].bytes);
    waits.fence();
  }
  if (!windows.exchange_notes(call, functions)) return false;
  const fence_at_exit<Exec> waits(takes);
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (incoming[i].bytes == 0) continue;
    const auto ranks = static_cast<std::size_t>(call.ranks()), r = i % ranks;
    const bool is_local = static_cast<int>(r) == call.rank();
    const std::byte* const source =
        is_local ? outgoing[i].data
                 : windows.part_of(static_cast<int>(r), i - r + static_cast<std::size_t>(call.rank()));
    const transfer_region region(Space::name, incoming[i].data, Space::name, source, incoming[i].bytes,
                                 label);
    backend::copy_async(takes, label, incoming[i].data, source, incoming[i].bytes);
  }
  waits.fence();
  return true;
}

/// exchange through page-locked memory. Equal parts for several ranks, one after the other, leave the device
/// once. Blocks.
template <class Exec>
void exchange_by_host(collective& call, const Exec& sends, const Exec& takes,
                      std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming) {
  using backend = execution_backend<Exec>;
  static constexpr const char* label = "ferry::distributed::staged";
  const auto repeats = [&](std::size_t i) {
    return i != 0 && outgoing[i].data == outgoing[i - 1].data && outgoing[i].bytes == outgoing[i - 1].bytes;
  };
  std::size_t bytes_out = 0, bytes_in = 0;
  for (std::size_t i = 0; i < outgoing.size(); ++i) bytes_out += repeats(i) ? 0 : outgoing[i].bytes;
  for (const incoming_part& part : incoming) bytes_in += part.bytes;
  tensor<std::byte, pinned_space> leaving("values for ranks", bytes_out),
      arrived("values of ranks", bytes_in);
  std::vector<outgoing_part> host_out(outgoing.begin(), outgoing.end());
  std::vector<incoming_part> host_in(incoming.begin(), incoming.end());
  std::byte* next = leaving.data();
  {
    const fence_at_exit<Exec> waits(sends);
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      if (repeats(i)) {
        host_out[i] = host_out[i - 1];
        continue;
      }
      if (outgoing[i].bytes != 0)
        backend::copy_async(sends, label, next, outgoing[i].data, outgoing[i].bytes);
      host_out[i].data = next;
      next += outgoing[i].bytes;
    }
    waits.fence();
  }
  next = arrived.data();
  for (incoming_part& part : host_in) {
    part.data = next;
    next += part.bytes;
  }
  call.exchange(host_out, host_in);
  const fence_at_exit<Exec> waits(takes);
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (incoming[i].bytes == 0) continue;
    const transfer_region region(device_space::name, incoming[i].data, pinned_space::name, host_in[i].data,
                                 incoming[i].bytes, label);
    backend::copy_async(takes, label, incoming[i].data, host_in[i].data, incoming[i].bytes);
  }
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
  } else if (call.shares_addresses()) {
    instance_lane<Exec> lane(sends, takes);
    lane.publish();
    call.exchange(outgoing, incoming, &lane);
  } else {
    if constexpr (shares_memory<Space>())
      if (rank_windows* const windows = rank_windows_of(call); windows != nullptr && windows->serve())
        if (exchange_by_windows<Space>(call, *windows, sends, takes, outgoing, incoming)) return;
    exchange_by_host(call, sends, takes, outgoing, incoming);
  }
}

}  // namespace ferry::detail
