// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The sum over the arrays of ranks by kernels that read and write all of them where they are.
namespace ferry::kernels {

/// Elements of all arrays = their sum, added in the order of the arrays. Of `size` elements those from
/// `first` to `last`, in groups of `packet`.
///
/// Device mapping: a fixed number of threads walks over the groups, neighbours over neighbouring ones, so
/// that reads of one group and writes of another cross the links at once. A thread asks for the packets of
/// four arrays before it adds the first. The last group may be shorter, and goes element by element, as all
/// do if `packed` is false. No other thread, and no other rank's kernel, uses the elements of a group.
template <class T>
struct sum_in_place {
  static constexpr int most = 32;
  static constexpr int packet = sizeof(T) < 16 ? static_cast<int>(16 / sizeof(T)) : 1;
  static constexpr int at_once = 4;
  /// As many threads as two blocks of 512 on 132 multiprocessors: these fill NVLink (H200).
  static constexpr std::int64_t most_iterations = 2 * 132 * 512;
  using tile = tile_shape<packet, true, false, false>;
  using compute = accumulation_t<T>;

  T* arrays[most];
  int count;
  bool packed;
  std::int64_t first;
  std::int64_t last;
  std::int64_t size;
  std::int64_t iterations;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    for (std::int64_t begin = first + i * packet; begin < last; begin += iterations * packet)
      if (packed && begin + packet <= size)
        add_packet(begin);
      else
        add_elements(begin);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void add_packet(std::int64_t begin) const {
    compute sum[packet];
    for (int r = 0; r < count; r += at_once) {
      compute part[at_once][packet];
      for (int k = 0; k < at_once; ++k)
        if (r + k < count) load_tile<tile>(part[k], static_cast<const T*>(arrays[r + k]) + begin, packet);
      for (int k = 0; k < at_once; ++k)
        if (r + k < count)
          for (int e = 0; e < packet; ++e) sum[e] = r + k == 0 ? part[k][e] : sum[e] + part[k][e];
    }
    for (int r = 0; r < count; ++r) store_tile<tile>(sum, arrays[r] + begin, packet);
  }
  KOKKOS_FORCEINLINE_FUNCTION void add_elements(std::int64_t begin) const {
    for (std::int64_t k = begin; k < begin + packet && k < size; ++k) {
      auto sum = convert<compute>(arrays[0][k]);
      for (int r = 1; r < count; ++r) sum += convert<compute>(arrays[r][k]);
      const T rounded = convert<T>(sum);
      for (int r = 0; r < count; ++r) arrays[r][k] = rounded;
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The words of a rank about its array.
struct summed_array {
  std::uintptr_t data = 0;
  int device = -1;          ///< of the array and of the instance
  std::int32_t direct = 0;  ///< true if kernels may take it as it is
};

/// The array of a rank, which no work uses any more when this returns: other ranks are about to write to it.
template <class Exec, class T, class Space>
summed_array describe_summed(const Exec& exec, const array_ref<T, Space>& array) {
  summed_array summed;
  if constexpr (!is_host_exec<Exec> && !Space::is_host_accessible) {
    const int device = execution_backend<Exec>::device_of(exec);
    if (!array.is_contiguous() || (array.device() >= 0 && array.device() != device)) return summed;
    static const std::string label = "ferry::all_reduce::arrays";
    if (array.accesses != nullptr) array.accesses->wait_for_all();
    execution_backend<Exec>::fence(exec, label);
    summed.data = reinterpret_cast<std::uintptr_t>(array.data);
    summed.device = device;
    summed.direct = 1;
  }
  return summed;
}

/// True if kernels of each rank reach the arrays of all; the same on all ranks. Arrays may be one array, but
/// must not overlap otherwise.
template <class Exec>
bool can_sum_in_place([[maybe_unused]] const std::vector<summed_array>& arrays,
                      [[maybe_unused]] std::size_t bytes) {
  if constexpr (is_host_exec<Exec>) {
    return false;
  } else {
    if (arrays.size() > static_cast<std::size_t>(kernels::sum_in_place<float>::most)) return false;
    for (const summed_array& array : arrays)
      if (array.direct == 0) return false;
    for (const summed_array& array : arrays)
      for (const summed_array& second : arrays) {
        if (array.data < second.data && second.data - array.data < bytes) return false;
        if (!execution_backend<Exec>::devices_reach(array.device, second.device)) return false;
      }
    return true;
  }
}

/// No rank leaves an exchange before all have taken what they need, here by a kernel.
template <class Act>
class acting_lane final : public device_lane {
 public:
  explicit acting_lane(const Act& act) : act_(act) {}
  void publish() override {}
  [[nodiscard]] const event_handle& published() const override { return nothing_; }
  [[nodiscard]] int device() const override { return -1; }
  void take(const device_lane*, std::byte*, const std::byte*, std::size_t) override {}
  void read(std::byte*, const std::byte*, std::size_t) const override {}
  void finish() override { act_(); }
  void abandon() noexcept override {}

 private:
  const Act& act_;
  event_handle nothing_;
};

/// array = the sum of the ranks' arrays, if can_sum_in_place. Each rank sums a part, for all.
template <class Exec, class T, class Space>
ticket sum_ranks_in_place(collective& call, const Exec& exec, const array_ref<T, Space>& array,
                          const std::vector<summed_array>& arrays) {
  using kernel = kernels::sum_in_place<T>;
  launch_context<Exec> launch_call(exec, "all_reduce");
  launch_call.refuse_capture("but it waits for other ranks");
  launch_call.writes_to(array);
  kernel sum{};
  sum.count = static_cast<int>(arrays.size());
  sum.packed = true;
  for (std::size_t r = 0; r < arrays.size(); ++r) {
    sum.arrays[r] = reinterpret_cast<T*>(arrays[r].data);
    sum.packed = sum.packed && arrays[r].data % (kernel::packet * sizeof(T)) == 0;
  }
  sum.size = array.size();
  const std::int64_t groups = (sum.size + kernel::packet - 1) / kernel::packet;
  const auto begin = [&](int rank) {
    return groups / call.ranks() * rank + std::min<std::int64_t>(groups % call.ranks(), rank);
  };
  const std::int64_t share = begin(call.rank() + 1) - begin(call.rank());
  sum.first = begin(call.rank()) * kernel::packet;
  sum.last = begin(call.rank() + 1) * kernel::packet;
  sum.iterations = std::max<std::int64_t>(1, std::min(share, kernel::most_iterations));
  const std::string& label = launch_call.label("in_place");
  const auto act = [&] {
    launch(exec, label, std::min(share, sum.iterations), sum);
    execution_backend<Exec>::fence(exec, label);
  };
  acting_lane<decltype(act)> lane(act);
  const std::vector<outgoing_part> outgoing(arrays.size());
  const std::vector<incoming_part> incoming(arrays.size());
  call.exchange(outgoing, incoming, &lane);  // throws also if another rank's kernel failed
  call.close();
  return launch_call.finish();
}

}  // namespace ferry::detail
