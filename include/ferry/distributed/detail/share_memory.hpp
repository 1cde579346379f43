// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/collective.hpp>
#include <ferry/distributed/detail/machine_mark.hpp>
#include <ferry/distributed/detail/shared_memory.hpp>
#include <ferry/distributed/detail/socket_transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/registry.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// Memory of one process that ranks share, with its entries in the accounts of the space.
template <class Space>
class shared_block {
 public:
  shared_block(const std::string& label, std::size_t bytes) {
    if constexpr (!std::is_same_v<Space, pinned_space>)
      if (bytes != 0) charge_ = memory_charge(Space::name, "ferry::tensor::" + label, bytes);
    memory_ = shared_memory::make(label, bytes);
    lock(label);
    if constexpr (!std::is_same_v<Space, pinned_space>)
      if (bytes != 0) charge_.confirm();
  }
  shared_block(const std::string& label, owned_descriptor&& of, std::size_t bytes)
      : memory_(shared_memory::open(label, std::move(of), bytes)) {
    lock(label);
  }
  shared_block(const shared_block&) = delete;
  shared_block& operator=(const shared_block&) = delete;
  ~shared_block() { locked_.reset(); }

  [[nodiscard]] std::byte* data() const { return memory_.data(); }
  [[nodiscard]] shared_memory& memory() { return memory_; }

 private:
  void lock(const std::string& label) {
    if constexpr (std::is_same_v<Space, pinned_space>)
      if (memory_.bytes() != 0) locked_.emplace("ferry::tensor::" + label, memory_.data(), memory_.bytes());
  }
  struct nothing {};
  using lock_type =
      std::conditional_t<std::is_same_v<Space, pinned_space>, locked_pages<pinned_space>, nothing>;

  memory_charge charge_;
  shared_memory memory_;
  std::optional<lock_type> locked_;
};

/// The descriptor of rank 0 on the other ranks, which are processes of their own. A transport that can't pass
/// it on gets help from local sockets.
inline owned_descriptor descriptor_of_first(collective& call, const communicator& comm, int mine) {
  if (comm.group()->passes_descriptors()) return owned_descriptor(call.pass_descriptor(0, mine));
  struct proposal {
    machine_mark machine;
    std::uint64_t key = 0;
  } own{machine_mark::here(), 0};
  std::random_device random;
  own.key = (static_cast<std::uint64_t>(random()) << 32) ^ random();
  const auto all = call.all_gather(std::span<const proposal>(&own, 1));
  for (const proposal& each : all)
    if (!(each.machine == all.front().machine))
      throw invalid_argument(
          "ferry::shared_tensor: the ranks are on several machines, which share no memory; use a sharded_table");
  socket_transport local(call.rank(), call.ranks(), "shared." + std::to_string(all.front().key),
                         std::chrono::seconds(60));
  return owned_descriptor(local.pass_descriptor(call.rank(), call_note("shared_tensor"), 0, mine));
}

/// Memory that all ranks of the call share.
template <class Space>
std::shared_ptr<shared_block<Space>> share_memory(collective& call, const communicator& comm,
                                                  const std::string& label, std::size_t bytes) {
  using block = std::shared_ptr<shared_block<Space>>;
  const auto& group = *comm.group();
  if (call.is_whole()) return std::make_shared<shared_block<Space>>(label, bytes);
  block mine;
  if (call.rank() == 0) mine = std::make_shared<shared_block<Space>>(label, bytes);
  if (group.local_count() == group.size()) {  // ranks of one process
    const block* const own = &mine;
    const auto all = call.all_gather(std::span<const block* const>(&own, 1));
    call.begin_reads();  // of the handle of rank 0, also where its deadline passes
    if (call.rank() != 0) mine = *all.front();
    call.agree();
    return mine;
  }
  if (group.local_count() != 1)
    throw invalid_argument(
        "ferry::shared_tensor: ranks must be threads of one process, or processes of one rank each");
  call.agree();  // rank 0 has the memory
  if (bytes == 0) return call.rank() == 0 ? mine : std::make_shared<shared_block<Space>>(label, bytes);
  owned_descriptor theirs =
      descriptor_of_first(call, comm, call.rank() == 0 ? mine->memory().descriptor() : -1);
  if (call.rank() != 0) mine = std::make_shared<shared_block<Space>>(label, std::move(theirs), bytes);
  call.agree();
  mine->memory().close();
  return mine;
}

}  // namespace ferry::detail
