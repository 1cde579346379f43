// SPDX-License-Identifier: Apache-2.0

#include "host_segment.hpp"

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/shared_tensor.hpp>
#include <ferry/error.hpp>

#include <cxxabi.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace ferry::detail {

std::uint64_t random_number() {
  std::random_device random;
  return ((static_cast<std::uint64_t>(random()) << 32) ^ random()) | 1;
}

process_home process_home::current() {
  process_home home;
  if (std::FILE* const stream = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(home.boot.data(), static_cast<int>(home.boot.size()), stream) == nullptr) home.boot = {};
    std::fclose(stream);
  }
  struct stat facts {};
  if (::stat("/proc/self/ns/pid", &facts) == 0) home.numbers = static_cast<std::uint64_t>(facts.st_ino);
  return home;
}

shared_record::shared_record(const std::type_info& elements, std::size_t bytes, std::string_view space_name,
                             std::string_view tensor_label, std::span<const std::size_t> sizes)
    : mark(own_mark),
      type(digest_of(elements)),
      element_bytes(bytes),
      rank(sizes.size()),
      home(process_home::current()),
      space(space_name),
      type_name(elements.name()),
      label(tensor_label) {
  std::copy(sizes.begin(), sizes.end(), extents.begin());
}

std::string shared_record::describe() const {
  if (mark != own_mark) return "a handle that names no tensor";
  std::string shape = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(rank, max_rank); ++i)
    shape += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return "'" + std::string(label.view()) + "' " + shape + "] of " + name_of_type(type_name.view()) + " in " +
         std::string(space.view()) +
         (segment.lease.number == 0 ? std::string()
                                    : ", of process " + std::to_string(segment.lease.process));
}

std::uint64_t shared_record::digest_of(const std::type_info& type) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  for (const char* c = type.name(); *c != '\0'; ++c)
    digest = (digest ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return digest;
}

std::string shared_record::name_of_type(std::string_view mangled) {
  int status = 0;
  const std::string text(mangled);
  char* const readable = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (readable == nullptr) return text;
  std::string name(readable);
  std::free(readable);
  return name;
}

void refuse_record(const char* call, const shared_record& record, const std::string& why) {
  throw invalid_argument(std::string(call) + ": " + record.describe() + ": " + why);
}

void refuse_host_memory(const char* call, const shared_record& record) {
  refuse_record(call, record,
                "on this backend that is host memory, which no other process can open; make a "
                "ferry::shared_tensor instead");
}

void require_opens(const shared_record& record, const std::type_info& elements, std::size_t bytes,
                   std::string_view space, int rank) {
  const auto refuse = [&record](const std::string& why) { refuse_record("ferry::open_shared", record, why); };
  if (record.mark != shared_record::own_mark || record.rank > max_rank)
    refuse("it was not made by ferry::share of this version");
  const process_home own_home = process_home::current();
  if (record.home.boot != own_home.boot) refuse("it was shared on another machine");
  if (record.home.numbers != own_home.numbers)
    refuse("it was shared in another container, whose processes this one does not see");
  if (record.space.view() != space) refuse("it was opened as a tensor in " + std::string(space));
  if (record.type != shared_record::digest_of(elements) || record.element_bytes != bytes)
    refuse("it has elements of " + std::to_string(record.element_bytes) +
           " bytes, and was opened as a tensor of " + shared_record::name_of_type(elements.name()) + ", of " +
           std::to_string(bytes) + " bytes");
  if (rank >= 0 && std::cmp_not_equal(record.rank, rank))
    refuse("it has " + std::to_string(record.rank) + " extents, and was opened as a tensor of " +
           std::to_string(rank));
}

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

namespace {

constexpr const char* lane_call = "ferry::communicator";
constexpr const char* lane_label = "lane of a rank";

/// The words of a rank about the lanes of the others.
struct lane_trouble {
  bool is_there = false;
  short_text<256> text;
};

}  // namespace

lane_memory make_host_lane(std::size_t bytes, int device) {
  auto segment = std::make_shared<host_segment>(lane_call, lane_label, bytes, false);
  lane_memory lane{{segment, segment->data()}, bytes, device, {}};
  lane.handle.host_memory = segment->handle();
  return lane;
}

std::shared_ptr<std::byte> open_host_lane(const lane_handle& handle, int) {
  auto segment = std::make_shared<host_segment>(lane_call, lane_label, handle.host_memory, false);
  return {segment, segment->data()};
}

void rank_lanes::close(const std::string& why) {
  serve_ = false;
  memory_ = {};
  opened_.assign(opened_.size(), {});
  why_not_ = why;
}

std::byte* rank_lanes::reserve(std::size_t bytes, int device, const lane_functions& functions) {
  if (is_shown_ || bytes > memory_.bytes || device != memory_.device) {
    memory_ = {};  // if the others have it open, it lives until they have opened the new one
    is_shown_ = false;
    // A quarter more, so that batches that grow slowly do not need new memory each time.
    constexpr std::size_t least = std::size_t{1} << 20, page = std::size_t{1} << 16;
    const std::size_t room = (std::max(bytes + bytes / 4, least) + page - 1) / page * page;
    for (const std::size_t size : {room, bytes}) {
      try {
        memory_ = functions.make(size, device);
        break;
      } catch (const bad_alloc&) {  // less may be left
      } catch (const std::bad_alloc&) {
      } catch (const error& lost) {
        close(std::string("this rank can't share memory: ") + lost.what());
        return nullptr;
      }
    }
    if (memory_.data == nullptr) return nullptr;
    ++number_;
  }
  is_shown_ = true;
  return memory_.data.get();
}

bool rank_lanes::open(collective& call, std::span<const std::uint64_t> numbers, std::span<const int> devices,
                      const lane_functions& functions) {
  const std::size_t ranks = opened_.size();
  if (!std::equal(devices.begin(), devices.end(), devices_.begin())) {
    opened_.assign(ranks, {});
    devices_.assign(devices.begin(), devices.end());
  }
  const auto is_new = [&](std::size_t r) { return numbers[r] != 0 && numbers[r] != opened_[r].number; };
  bool is_any_new = false;
  for (std::size_t r = 0; r < ranks; ++r) is_any_new = is_any_new || is_new(r);
  if (!is_any_new) return true;
  const auto handles = call.all_gather(std::span<const lane_handle>(&memory_.handle, 1));
  const auto self = static_cast<std::size_t>(call.rank());
  std::vector<std::shared_ptr<std::byte>> lanes(ranks);
  lane_trouble trouble;
  try {
    for (std::size_t r = 0; r < ranks; ++r)
      if (r != self && is_new(r)) lanes[r] = functions.open(handles[r], devices[self]);
  } catch (const std::exception& lost) {
    trouble = {true, short_text<256>(lost.what())};
  }
  const auto troubles = call.all_gather(std::span<const lane_trouble>(&trouble, 1));
  for (std::size_t r = 0; r < ranks; ++r)
    if (troubles[r].is_there) {
      close("rank " + std::to_string(r) +
            " can't read the memory of the others: " + std::string(troubles[r].text.view()));
      return false;
    }
  for (std::size_t r = 0; r < ranks; ++r)
    if (is_new(r)) opened_[r] = {std::move(lanes[r]), numbers[r]};
  return true;
}

rank_lanes* rank_lanes_of(const collective& call) {
  transport& group = *call.group();
  if (call.is_whole() || group.local_count() != 1 || group.size() == 1) return nullptr;
  auto& lanes = group.lanes();
  if (lanes == nullptr) lanes = std::make_shared<rank_lanes>(group.size());
  return static_cast<rank_lanes*>(lanes.get());
}

}  // namespace ferry::detail
