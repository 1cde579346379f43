// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/share.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry::detail {

/// Names the lane of a rank for the other processes of the machine.
struct lane_handle {
  shared_handle device_memory;
  segment_handle host_memory;
};

/// Memory of this process that others open.
struct lane_memory {
  std::shared_ptr<std::byte> data;
  std::size_t bytes = 0;
  int device = -1;  ///< that the memory is for
  lane_handle handle;
};

/// Functions for the kind of memory that the kernels of an execution space share.
struct lane_functions {
  lane_memory (*make)(std::size_t bytes, int device);
  std::shared_ptr<std::byte> (*open)(const lane_handle& handle, int device);
};

/// Lanes in host memory. Throw bad_alloc, budget_exceeded; invalid_argument for a process that can't be
/// reached.
/// @{
lane_memory make_host_lane(std::size_t bytes, int device);
std::shared_ptr<std::byte> open_host_lane(const lane_handle& handle, int device);
/// @}
/// Lanes in memory of devices. Throw as tensor, share and open_shared do.
/// @{
template <MemorySpace Space>
lane_memory make_device_lane(std::size_t bytes, int device) {
  auto memory = std::make_shared<tensor<std::byte, Space>>("lane of a rank", ferry::device{device}, bytes);
  lane_memory lane{{memory, memory->data()}, bytes, device, {}};
  lane.handle.device_memory = share(*memory);
  return lane;
}
template <MemorySpace Space>
std::shared_ptr<std::byte> open_device_lane(const lane_handle& handle, int device) {
  auto memory = std::make_shared<tensor<std::byte, Space>>(
      open_shared<std::byte, Space>(handle.device_memory, ferry::device{device}));
  return {memory, memory->data()};
}
/// @}

/// The lanes of a group of processes. Each rank puts into its own what the others are to read, tells them the
/// number of its memory and places in it, and does not touch it before all have read. A lane grows by new
/// memory with another number, which the others open when they first meet it. A rank that an exception leads
/// out of a verb does not know whether the others still read: it leaves them that memory, and takes new. The
/// group keeps the lanes.
class rank_lanes final : public shown_memory {
 public:
  explicit rank_lanes(int ranks)
      : opened_(static_cast<std::size_t>(ranks)), devices_(static_cast<std::size_t>(ranks), -1) {}
  rank_lanes(const rank_lanes&) = delete;
  rank_lanes& operator=(const rank_lanes&) = delete;

  /// False if a rank could not open the lane of another one, on all of them from then on, or if this one
  /// can't make any.
  [[nodiscard]] bool serve() const { return serve_; }
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// Frees all memory. This rank reads no lane, and the others keep those of its lanes that they read.
  void close(const std::string& why);

  /// Returns memory of this rank, of `bytes` or more; the others may read it from now on. Returns null if
  /// there is not enough, and if the device can't share memory: then the lanes no longer serve.
  [[nodiscard]] std::byte* reserve(std::size_t bytes, int device, const lane_functions& functions);
  void end_reads() noexcept override { is_shown_ = false; }
  /// The number of that memory.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// Opens the memory that ranks have told of in an all_gather, for kernels of this rank's device. All ranks
  /// pass the same numbers, 0 for a rank that shows nothing, and the same devices, those of the kernels that
  /// read. Two phases if some memory is new, else none. False, on all ranks alike, if one can't open it.
  [[nodiscard]] bool open(collective& call, std::span<const std::uint64_t> numbers,
                          std::span<const int> devices, const lane_functions& functions);
  /// The memory of another rank.
  [[nodiscard]] std::byte* data(int rank) const { return opened_[static_cast<std::size_t>(rank)].data.get(); }

 private:
  struct opened_lane {
    std::shared_ptr<std::byte> data;  ///< null for the own one
    std::uint64_t number = 0;         ///< of the memory that all others have opened
  };

  bool serve_ = true;
  std::string why_not_;
  lane_memory memory_;
  bool is_shown_ = false;  ///< others may read the memory
  std::uint64_t number_ = 0;
  std::vector<opened_lane> opened_;  ///< by rank
  std::vector<int> devices_;         ///< by rank, whose kernels read
};

/// The lanes of the group of a call; null if its ranks are not processes of one rank each.
[[nodiscard]] rank_lanes* rank_lanes_of(const collective& call);

}  // namespace ferry::detail
