// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/share_memory.hpp>

#include "host_segment.hpp"

#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/error.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

constexpr const char* shared_tensor_call = "ferry::shared_tensor";

using segment_owner = std::shared_ptr<host_segment>;

segment_owner segment_of_ranks(collective& call, const communicator& comm, const std::string& label,
                               std::size_t bytes, bool pinned) {
  const auto& group = *comm.group();
  segment_owner segment;
  if (call.is_whole() || call.rank() == 0)
    segment = std::make_shared<host_segment>(shared_tensor_call, label, bytes, pinned);
  if (call.is_whole()) return segment;
  if (group.local_count() == group.size()) {  // ranks of one process
    const segment_owner* const owner = &segment;
    call.begin_reads();  // of the owner of rank 0, also if its deadline passes
    const auto owners = call.all_gather(std::span<const segment_owner* const>(&owner, 1));
    if (call.rank() != 0) segment = *owners.front();
    call.agree();
    call.cancel_reads();
    return segment;
  }
  if (group.local_count() != 1)
    throw invalid_argument(
        "ferry::shared_tensor: ranks must be threads of one process, or processes of one rank each");
  const segment_handle handle = segment == nullptr ? segment_handle{} : segment->handle();
  const auto handles = call.all_gather(std::span<const segment_handle>(&handle, 1));  // rank 0 has the memory
  if (call.rank() != 0) try {
      segment = std::make_shared<host_segment>(shared_tensor_call, label, handles.front(), pinned);
    } catch (const invalid_argument& why) {
      throw invalid_argument(std::string("ferry::shared_tensor: ") + why.what() +
                             "; ranks on several machines share no memory: use a sharded_table");
    }
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
