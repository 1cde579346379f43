// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/share_memory.hpp>

#include "../../../backends/enabled.hpp"
#include "../../memory/available_bytes.hpp"
#include "../communicator/socket_transport.hpp"
#include "machine_mark.hpp"
#include "random_number.hpp"

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

/// Host memory without a name that processes share by its descriptor, in the accounts of its space. All of its
/// pages are there from the beginning, and no process can take them away, so no access ends a process by
/// SIGBUS.
class host_segment {
 public:
  /// New memory, which is zero. Throws bad_alloc, budget_exceeded.
  host_segment(const std::string& label, std::size_t bytes, bool pinned) : bytes_(bytes) {
    if (bytes == 0) return;
    if (!pinned) charge_ = memory_charge(pageable_space::name, "ferry::tensor::" + label, bytes);
    reserve(label);
    map(label, pinned);
    if (!pinned) charge_.confirm();
  }
  /// The memory of another process. Throws bad_alloc.
  host_segment(const std::string& label, owned_descriptor&& descriptor, std::size_t bytes, bool pinned)
      : bytes_(bytes), descriptor_(std::move(descriptor)) {
    if (bytes == 0) return;
    if (descriptor_.get() < 0) fail(label, "this process may open no more files");
    map(label, pinned);
  }
  host_segment(const host_segment&) = delete;
  host_segment& operator=(const host_segment&) = delete;
  ~host_segment() = default;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(mapping_.get()); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The mapping stays.
  void close_descriptor() { descriptor_ = owned_descriptor(); }

 private:
  struct unmapping {
    std::size_t bytes;
    void operator()(void* data) const noexcept { ::munmap(data, bytes); }
  };

  [[noreturn]] void fail(const std::string& label, const std::string& why) const {
    throw bad_alloc("ferry::shared_tensor: no " + std::to_string(bytes_) + " bytes of shared memory for '" +
                    label + "': " + why);
  }
  [[noreturn]] void fail_call(const std::string& label, const char* call, int error) const {
    fail(label, std::string(call) + ": " + std::strerror(error));
  }
  void reserve(const std::string& label) {
    const std::int64_t available = available_bytes();
    if (std::cmp_greater(bytes_, std::int64_t{1} << 62) ||
        (available >= 0 && std::cmp_greater(bytes_, available)))
      fail(label, std::to_string(available) + " bytes are available");
    descriptor_ = owned_descriptor(::memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int file = descriptor_.get();
    if (file < 0) fail_call(label, "memfd_create", errno);
    const auto size = static_cast<off_t>(bytes_);
    if (::ftruncate(file, size) != 0) fail_call(label, "ftruncate", errno);
    // In pieces: a signal undoes a call, and under a timer a long one would never end.
    constexpr off_t piece = off_t{1} << 25;
    for (off_t first = 0; first < size; first += piece) {
      int status = EINTR;
      while (status == EINTR) status = ::posix_fallocate(file, first, std::min(piece, size - first));
      if (status != 0) fail_call(label, "posix_fallocate", status);
    }
    if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail_call(label, "F_ADD_SEALS", errno);
  }
  void map(const std::string& label, bool pinned) {
    void* const raw = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (raw == MAP_FAILED) fail_call(label, "mmap", errno);
    mapping_ = {raw, unmapping{bytes_}};
    if (pinned) locked_.emplace("ferry::tensor::" + label, raw, bytes_);
  }

  std::size_t bytes_;
  memory_charge charge_;
  owned_descriptor descriptor_;
  std::unique_ptr<void, unmapping> mapping_{};
  std::optional<locked_pages<pinned_space>> locked_;
};

/// The descriptor of rank 0 on the other ranks, which are processes of their own. A transport that can't pass
/// it on gets help from local sockets.
owned_descriptor descriptor_of_first(collective& call, const communicator& comm, int mine) {
  if (comm.group()->passes_descriptors()) return owned_descriptor(call.pass_descriptor(0, mine));
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
  return owned_descriptor(local.pass_descriptor(call.rank(), call_note("shared_tensor"), 0, mine));
}

using segment_handle = std::shared_ptr<host_segment>;

segment_handle segment_of_ranks(collective& call, const communicator& comm, const std::string& label,
                                std::size_t bytes, bool pinned) {
  const auto& group = *comm.group();
  segment_handle segment;
  if (call.is_whole() || call.rank() == 0) segment = std::make_shared<host_segment>(label, bytes, pinned);
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
  if (bytes == 0) return call.rank() == 0 ? segment : std::make_shared<host_segment>(label, bytes, pinned);
  owned_descriptor descriptor =
      descriptor_of_first(call, comm, call.rank() == 0 ? segment->descriptor() : -1);
  if (call.rank() != 0) segment = std::make_shared<host_segment>(label, std::move(descriptor), bytes, pinned);
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
