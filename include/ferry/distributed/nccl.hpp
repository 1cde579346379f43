// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Sums over ranks by NCCL. Needs NCCL's header and library; no other header of ferry does.

#include <ferry/distributed/collectives/all_reduce.hpp>
#include <ferry/distributed/collectives/detail/nccl_link.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

/// Sums over ranks by NCCL.
namespace ferry::nccl {

#if __has_include(<nccl.h>)

/// A policy of all_reduce: NCCL adds, in an order of its own. It depends on the number of ranks, the size of
/// the array and the machine, so the bits may change with these; all ranks get the same. Each rank holds its
/// own object, which copies share. It keeps NCCL's communicator of the rank, and aborts it at its end.
///
///   const ferry::nccl::any_order fast(exec, comm);          // on each rank
///   ferry::all_reduce(exec, comm, gradients, fast).wait();
class any_order {
 public:
  /// Collective. `exec` is an instance of the rank's device; no two ranks may share one. A thread that acts
  /// for the group as a whole gets an object that does nothing.
  ///
  /// The deadline is that of each wait of this rank for NCCL, which includes work that was enqueued on the
  /// instance before. Throws invalid_argument on all ranks if threads of one process share a device, or
  /// if a deadline is not positive; communication_error with NCCL's text if NCCL fails, or is not ready
  /// within the deadline; peer_error if that happened to another rank.
  template <class Exec>
  any_order(const Exec& exec, const ferry::communicator& comm, const communicator_options& options = {})
      : group_(comm.group()), rank_(comm.acting_rank()), device_(ferry::detail::memory_home(exec).id) {
    static_assert(!ferry::detail::is_host_exec<Exec>,
                  "ferry: nccl::any_order needs the instance of a device; NCCL adds on devices only.");
    using backend = execution_backend<Exec>;
    ferry::detail::collective call(comm, ferry::detail::call_note("nccl::any_order"));
    if (call.is_whole()) return;
    call.guarded([&] {
      const auto deadline = ferry::detail::checked_deadline("nccl::any_order", options.deadline);
      struct {
        ncclUniqueId id;
        int device;
      } rank_note{};
      rank_note.device = device_;
      if (rank_ == 0)
        if (const ncclResult_t code = ncclGetUniqueId(&rank_note.id); code != ncclSuccess)
          throw communication_error(std::string("ferry::nccl: ncclGetUniqueId failed: ") +
                                    ncclGetErrorString(code));
      const auto notes = call.all_gather(std::span<const decltype(rank_note)>(&rank_note, 1));
      if (group_->local_count() == group_->size())
        for (std::size_t r = 0; r < notes.size(); ++r)
          for (std::size_t earlier = 0; earlier < r; ++earlier)
            if (notes[r].device == notes[earlier].device)
              throw invalid_argument(ferry::detail::joined("ferry::nccl::any_order: ranks ", earlier, " and ",
                                                           r, " are both on device ", notes[r].device,
                                                           "; NCCL needs a device for each rank"));
      const typename backend::device_guard guard(device_);
      auto* link = new ferry::detail::nccl_link(rank_, group_->size(), notes[0].id, deadline);
      link_ = std::shared_ptr<ferry::detail::nccl_link>(
          link, [device = device_](const ferry::detail::nccl_link* ended) {
            const typename backend::device_guard current_device(device, std::nothrow);
            delete ended;
          });
      call.agree();
      call.close();
    });
  }

  /// For all_reduce. Throws invalid_argument for another group, rank or device than those of this object.
  [[nodiscard]] ferry::detail::nccl_link& link(const ferry::communicator& comm, int rank, int device) const {
    if (comm.group() != group_ || rank != rank_ || device != device_ || link_ == nullptr)
      throw invalid_argument(ferry::detail::joined(
          "ferry::all_reduce: this nccl::any_order was made by rank ", rank_, " on device ", device_,
          (comm.group() == group_ ? "" : " of another communicator"), "; rank ", rank, " uses device ",
          device));
    link_->require_alive();
    return *link_;
  }

 private:
  std::shared_ptr<ferry::detail::transport> group_;
  int rank_;
  int device_;
  std::shared_ptr<ferry::detail::nccl_link> link_;
};

#else

/// Does not compile: the compiler finds no <nccl.h>.
class any_order {
 public:
  /// Does not compile.
  template <class Exec>
  any_order(const Exec&, const ferry::communicator&, const communicator_options& = {}) {
    static_assert(
        sizeof(Exec) == 0,
        "ferry: ferry/distributed/nccl.hpp needs NCCL: the compiler finds no <nccl.h>; link ferry::nccl, or add NCCL's include path.");
  }
};

#endif

}  // namespace ferry::nccl

#if __has_include(<nccl.h>)

namespace ferry {

/// array = the sum of the ranks' arrays, element by element, in the order of additions and the type that NCCL
/// chooses. All ranks get the same bits.
///
///   exec   the execution space instance that NCCL's work is enqueued on, of the rank's device
///   comm   the group
///   array  a dense array in device_space of float, double, half_t, bhalf_t, or integers of 8, 32 or 64 bits;
///          of the same type and extents on all ranks
///   order  the policy, made by this rank for this group and device
///
/// Collective, see communicator. Does nothing for a thread that acts for the group as a whole. Blocks until
/// the sums of all ranks are there. protocol_error if the arrays differ; peer_error if another rank
/// failed; communication_error with NCCL's text if NCCL fails or does not end within its deadline, after
/// which the policy is of no use any more, and the arrays may hold anything.
template <class Exec, class Array>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket all_reduce(
    const Exec& exec, const communicator& comm, Array&& array, const nccl::any_order& order) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Array>();
  detail::require_output<Array>();
  const auto ref = make_ref(array);
  using value = typename decltype(ref)::value_type;
  static_assert(!detail::is_host_exec<Exec> && !decltype(ref)::memory_space::is_host_accessible,
                "ferry: nccl::any_order sums arrays in device_space, by an instance of a device.");
  static_assert(
      detail::nccl_type<value>() != ncclNumTypes,
      "ferry: NCCL adds float, double, half_t, bhalf_t and integers of 8, 32 and 64 bits; it has no other types.");
  detail::call_note note("all_reduce by NCCL of");
  for (std::size_t i = 0; i < ref.rank; ++i) note.add(i == 0 ? "" : " x").add_number(ref.extents[i]);
  note.add(" elements").add_hidden(detail::note_part::types, typeid(value).hash_code());
  detail::collective call(comm, note);
  if (call.is_whole()) return {};
  return call.guarded([&] {
    using backend = execution_backend<Exec>;
    detail::nccl_link& link = order.link(comm, call.rank(), backend::device_of(exec));
    if (!ref.is_contiguous())
      throw invalid_argument(detail::joined("ferry::all_reduce: ", ref.describe(),
                                            " is not dense; nccl::any_order sums dense arrays"));
    detail::launch_context<Exec> launch_call(exec, "all_reduce");
    launch_call.refuse_capture("but all_reduce waits for other ranks");
    launch_call.writes_to(ref);
    call.agree();  // nothing is enqueued that would wait for a rank that does not come
    try {
      if (ref.size() != 0) {
        link.enqueue_sum(ref.data, ref.size(), detail::nccl_type<value>(), backend::native_queue(exec));
        const detail::event_handle end = launch_call.mark();
        link.wait("ncclAllReduce", [&] { return end == nullptr || end->ready(); });
      }
      call.agree();  // other ranks may read memory of this one until they have their sums
    } catch (...) {
      link.abort();
      throw;
    }
    call.close();
    return launch_call.finish();
  });
}

}  // namespace ferry

#endif
