// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/serve_ring.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

/// Every piece of a list goes through the ring.
struct all_by_ring {
  template <class Visit>
  void operator()(std::int64_t first, std::int64_t count, const Visit& visit) const {
    visit(first, count);
  }
};

/// The parts of queue pieces that a ring's worker takes, one after the other.
template <class Queue, class Parts>
class queued_parts {
 public:
  queued_parts(Queue& queue, const Parts& parts) : queue_(queue), parts_(parts) {}

  bool take(kernels::ring_post& next) {
    std::int64_t first = 0, count = 0;
    while (position_ == posts_.size()) {
      if (!queue_.take(first, count)) return false;
      posts_.clear();
      position_ = 0;
      parts_(first, count, [&](std::int64_t begin, std::int64_t length) {
        if (length > 0) posts_.push_back({begin, length, 0});
      });
    }
    next = posts_[position_++];
    return true;
  }

 private:
  Queue& queue_;
  const Parts& parts_;
  std::vector<kernels::ring_post> posts_;
  std::size_t position_ = 0;
};

}  // namespace ferry::detail
