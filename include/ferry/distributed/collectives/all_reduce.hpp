// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/distributed/collectives/detail/sum_in_place.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace ferry::kernels {

/// sum[i] = the values of all ranks at i, added in the order of the ranks. One thread per element.
template <class T>
struct sum_of_ranks {
  const T* values;  ///< [ranks x count]
  std::int64_t count;
  int ranks;
  T* sum;

  [[nodiscard]] std::int64_t bytes_each() const { return (ranks + 1) * static_cast<std::int64_t>(sizeof(T)); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    auto total = convert<accumulation_t<T>>(values[i]);
    for (int r = 1; r < ranks; ++r) total += convert<accumulation_t<T>>(values[r * count + i]);
    sum[i] = convert<T>(total);
  }
};

}  // namespace ferry::kernels

namespace ferry {

/// array = the sum of the ranks' arrays, element by element: ((x0 + x1) + x2) + ... in the order of the
/// ranks, in the accumulation type (float for 16-bit formats, 64 bits for integers), rounded once. All
/// ranks get the same bits.
///
///   exec   the execution space instance that adds
///   comm   the group
///   array  an array of numbers in any memory space, of the same type and extents on all ranks
///
/// Collective, see communicator. Each rank adds a slice of the elements, so the work of a rank does not grow
/// with their number. Dense arrays on devices that reach each other are read and written where they are, by
/// one kernel on each rank; others travel as rows do. Does nothing for a thread that acts for the group as a
/// whole. Blocks until the sum is there. protocol_error if the arrays differ; peer_error if another
/// rank failed.
template <class Exec, class Array>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket all_reduce(
    const Exec& exec, const communicator& comm, Array&& array) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Array>();
  detail::require_output<Array>();
  const auto ref = make_ref(array);
  using value = typename decltype(ref)::value_type;
  static_assert(NumberElement<value>, "ferry: all_reduce adds, so the elements must be numbers.");
  using home = detail::payload_space<Exec, typename decltype(ref)::memory_space>;
  detail::call_note note("all_reduce of");
  for (std::size_t i = 0; i < ref.rank; ++i) note.add(i == 0 ? "" : " x").add_number(ref.extents[i]);
  note.add(" elements").add_hidden(detail::note_part::types, typeid(value).hash_code());
  detail::collective call(comm, note);
  if (call.is_whole() || call.ranks() == 1) return {};
  return call.guarded([&] {
    const int ranks = call.ranks();
    if constexpr (!detail::device_is_host<Exec>)
      if (call.shares_addresses()) {  // ranks may have arrays in other spaces
        const detail::summed_array summed = detail::describe_summed(exec, ref);
        const auto arrays = call.all_gather(std::span<const detail::summed_array>(&summed, 1));
        if constexpr (!detail::is_host_exec<Exec> && !decltype(ref)::memory_space::is_host_accessible)
          if (detail::can_sum_in_place<Exec>(arrays, static_cast<std::size_t>(ref.size()) * sizeof(value)))
            return detail::sum_ranks_in_place(call, exec, ref, arrays);
      }
    const std::int64_t size = ref.size();
    const auto begin = [&](int r) { return size / ranks * r + size % ranks * r / ranks; };
    const std::int64_t slice_elements = begin(call.rank() + 1) - begin(call.rank());
    auto summands = detail::payload<value, home>(exec, "all_reduce", size);
    auto slices = detail::payload<value, home>(exec, "slices of all ranks", ranks * slice_elements);
    auto sum = detail::payload<value, home>(exec, "sum", slice_elements);
    detail::array_ref<value, home> like;
    like.rank = ref.rank;
    like.extents = ref.extents;
    like.make_dense();
    like.data = summands.data();
    copy(exec, ref, like).join();
    std::vector<detail::outgoing_part> outgoing(static_cast<std::size_t>(ranks));
    std::vector<detail::incoming_part> incoming(outgoing.size());
    const auto part = [](value* data, std::int64_t first, std::int64_t count) {
      return detail::incoming_part{reinterpret_cast<std::byte*>(data + first),
                                   static_cast<std::size_t>(count) * sizeof(value)};
    };
    for (int r = 0; r < ranks; ++r) {
      const auto place = static_cast<std::size_t>(r);
      const auto slice = part(summands.data(), begin(r), begin(r + 1) - begin(r));
      outgoing[place] = {slice.data, slice.bytes};
      incoming[place] = part(slices.data(), r * slice_elements, slice_elements);
    }
    detail::exchange_payload<home>(call, exec, exec, outgoing, incoming);
    static const std::string label = "ferry::all_reduce::in_order";
    const typename execution_backend<Exec>::device_guard guard(exec);  // Kokkos leaves its own device current
    detail::launch(exec, label, slice_elements,
                   kernels::sum_of_ranks<value>{slices.data(), slice_elements, ranks, sum.data()});
    execution_backend<Exec>::fence(exec, label);
    for (int r = 0; r < ranks; ++r) {
      const auto place = static_cast<std::size_t>(r);
      const auto slice = part(sum.data(), 0, slice_elements);
      outgoing[place] = {slice.data, slice.bytes};
      incoming[place] = part(summands.data(), begin(r), begin(r + 1) - begin(r));
    }
    detail::exchange_payload<home>(call, exec, exec, outgoing, incoming);
    call.close();
    copy(exec, like, ref).join();
    return ticket();
  });
}

}  // namespace ferry
