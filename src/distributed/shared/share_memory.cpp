// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/share_memory.hpp>

#include "../../../backends/enabled.hpp"
#include "../communicator/socket_transport.hpp"
#include "machine_mark.hpp"
#include "random_number.hpp"
#include "shared_memory.hpp"

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

/// Memory of one process that ranks share, with its entries in the accounts of the space.
class shared_block {
 public:
  shared_block(const std::string& label, std::size_t bytes, bool pinned) {
    if (!pinned && bytes != 0)
      charge_ = memory_charge(pageable_space::name, "ferry::tensor::" + label, bytes);
    memory_ = shared_memory::make(label, bytes);
    if (pinned) lock(label);
    if (!pinned && bytes != 0) charge_.confirm();
  }
  shared_block(const std::string& label, owned_descriptor&& descriptor, std::size_t bytes, bool pinned)
      : memory_(shared_memory::open(label, std::move(descriptor), bytes)) {
    if (pinned) lock(label);
  }
  shared_block(const shared_block&) = delete;
  shared_block& operator=(const shared_block&) = delete;
  ~shared_block() { locked_.reset(); }

  [[nodiscard]] shared_memory& memory() { return memory_; }

 private:
  void lock(const std::string& label) {
    if (memory_.bytes() != 0) locked_.emplace("ferry::tensor::" + label, memory_.data(), memory_.bytes());
  }

  memory_charge charge_;
  shared_memory memory_;
  std::optional<locked_pages<pinned_space>> locked_;
};

/// The descriptor of rank 0 on the other ranks, which are processes of their own. A transport that can't pass
/// it on gets help from local sockets.
owned_descriptor descriptor_of_first(collective& call, const communicator& comm, int mine) {
  if (comm.group()->passes_descriptors()) return owned_descriptor(call.pass_descriptor(0, mine));
  struct proposal {
    machine_mark machine;
    std::uint64_t key = 0;
  } const own{machine_mark::here(), random_number()};
  const auto all = call.all_gather(std::span<const proposal>(&own, 1));
  for (const proposal& other : all)
    if (!(other.machine == all.front().machine))
      throw invalid_argument(
          "ferry::shared_tensor: the ranks are on several machines, which share no memory; use a sharded_table");
  socket_transport local(call.rank(), call.ranks(), "shared." + std::to_string(all.front().key),
                         std::chrono::seconds(60));
  return owned_descriptor(local.pass_descriptor(call.rank(), call_note("shared_tensor"), 0, mine));
}

using shared_block_handle = std::shared_ptr<shared_block>;

shared_block_handle block_of_ranks(collective& call, const communicator& comm, const std::string& label,
                                   std::size_t bytes, bool pinned) {
  const auto& group = *comm.group();
  if (call.is_whole()) return std::make_shared<shared_block>(label, bytes, pinned);
  shared_block_handle mine;
  if (call.rank() == 0) mine = std::make_shared<shared_block>(label, bytes, pinned);
  if (group.local_count() == group.size()) {  // ranks of one process
    const shared_block_handle* const own = &mine;
    const auto all = call.all_gather(std::span<const shared_block_handle* const>(&own, 1));
    call.begin_reads();  // of the handle of rank 0, also if its deadline passes
    if (call.rank() != 0) mine = *all.front();
    call.agree();
    return mine;
  }
  if (group.local_count() != 1)
    throw invalid_argument(
        "ferry::shared_tensor: ranks must be threads of one process, or processes of one rank each");
  call.agree();  // rank 0 has the memory
  if (bytes == 0) return call.rank() == 0 ? mine : std::make_shared<shared_block>(label, bytes, pinned);
  owned_descriptor descriptor =
      descriptor_of_first(call, comm, call.rank() == 0 ? mine->memory().descriptor() : -1);
  if (call.rank() != 0) mine = std::make_shared<shared_block>(label, std::move(descriptor), bytes, pinned);
  call.agree();
  mine->memory().close();
  return mine;
}

}  // namespace

shared_bytes share_memory(collective& call, const communicator& comm, const std::string& label,
                          std::size_t bytes, bool pinned) {
  auto block = block_of_ranks(call, comm, label, bytes, pinned);
  std::byte* const data = block->memory().data();
  return {std::move(block), data};
}

}  // namespace ferry::detail
