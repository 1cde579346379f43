// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/share_memory.hpp>

#include "../communicator/socket_transport.hpp"
#include "host_segment.hpp"
#include "machine_mark.hpp"
#include "random_number.hpp"

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>
#include <ferry/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

/// The descriptor of rank 0 on the other ranks, which are processes of their own. A transport that can't pass
/// it on gets help from local sockets.
owned_descriptor descriptor_of_first(collective& call, const communicator& comm, int descriptor) {
  if (comm.group()->passes_descriptors()) return owned_descriptor(call.pass_descriptor(0, descriptor));
  struct proposal {
    machine_mark machine;
    std::uint64_t key = 0;
  } const proposal_here{machine_mark::current(), random_number()};
  const auto proposals = call.all_gather(std::span<const proposal>(&proposal_here, 1));
  for (const proposal& rank_proposal : proposals)
    if (!(rank_proposal.machine == proposals.front().machine))
      throw invalid_argument(
          "ferry::shared_tensor: the ranks are on several machines, which share no memory; use a sharded_table");
  socket_transport local(call.rank(), call.ranks(), "shared." + std::to_string(proposals.front().key),
                         std::chrono::seconds(60));
  return owned_descriptor(local.pass_descriptor(call.rank(), call_note("shared_tensor"), 0, descriptor));
}

constexpr const char* shared_tensor_call = "ferry::shared_tensor";

using segment_handle = std::shared_ptr<host_segment>;

segment_handle segment_of_ranks(collective& call, const communicator& comm, const std::string& label,
                                std::size_t bytes, bool pinned) {
  const auto& group = *comm.group();
  segment_handle segment;
  if (call.is_whole() || call.rank() == 0)
    segment = std::make_shared<host_segment>(shared_tensor_call, label, bytes, pinned);
  if (call.is_whole()) return segment;
  if (group.local_count() == group.size()) {  // ranks of one process
    const segment_handle* const handle = &segment;
    call.begin_reads();  // of the handle of rank 0, also if its deadline passes
    const auto handles = call.all_gather(std::span<const segment_handle* const>(&handle, 1));
    if (call.rank() != 0) segment = *handles.front();
    call.agree();
    call.cancel_reads();
    return segment;
  }
  if (group.local_count() != 1)
    throw invalid_argument(
        "ferry::shared_tensor: ranks must be threads of one process, or processes of one rank each");
  call.agree();  // rank 0 has the memory
  if (bytes == 0)
    return call.rank() == 0 ? segment
                            : std::make_shared<host_segment>(shared_tensor_call, label, bytes, pinned);
  owned_descriptor descriptor =
      descriptor_of_first(call, comm, call.rank() == 0 ? segment->descriptor() : -1);
  if (call.rank() != 0)
    segment = std::make_shared<host_segment>(shared_tensor_call, label, std::move(descriptor), bytes, pinned);
  call.agree();
  segment->close_descriptor();
  return segment;
}

}  // namespace

shared_bytes share_memory(collective& call, const communicator& comm, const std::string& label,
                          std::size_t bytes, bool pinned) {
  auto segment = segment_of_ranks(call, comm, label, bytes, pinned);
  std::byte* const data = segment->data();
  return {std::move(segment), data};
}

}  // namespace ferry::detail
