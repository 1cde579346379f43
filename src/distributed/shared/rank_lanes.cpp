// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/rank_lanes.hpp>

#include "host_segment.hpp"

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

namespace ferry::detail {

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
