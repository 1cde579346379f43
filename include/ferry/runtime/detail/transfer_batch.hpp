// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/device_span.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Transfers between two spaces, which enqueue() passes to the device in batches. They may run in any order.
/// Nothing is enqueued before enqueue().
template <class Exec>
class transfer_batch {
 public:
  transfer_batch(const Exec& exec, std::string label, std::string_view to_space, std::string_view from_space)
      : exec_(exec), label_(std::move(label)), to_space_(to_space), from_space_(from_space) {}

  void add(void* to, const void* from, std::int64_t bytes) {
    if (bytes <= 0) return;
    to_.push_back(to);
    from_.push_back(from);
    bytes_.push_back(static_cast<std::size_t>(bytes));
  }

  [[nodiscard]] bool empty() const { return to_.empty(); }

  void enqueue() {
    for (std::size_t begin = 0; begin < to_.size(); begin += at_once) {
      const std::size_t count = std::min(at_once, to_.size() - begin);
      const auto* sizes = bytes_.data() + begin;
      const transfer_region region(to_space_, to_[begin], from_space_, from_[begin],
                                   std::accumulate(sizes, sizes + count, std::size_t{0}), label_);
      const device_span<Exec> span(exec_, label_, "transfer");
      execution_backend<Exec>::copy_batch_async(exec_, label_.c_str(), to_.data() + begin,
                                                from_.data() + begin, bytes_.data() + begin, count);
    }
    to_.clear();
    from_.clear();
    bytes_.clear();
  }

 private:
  static constexpr std::size_t at_once = 64;

  const Exec& exec_;
  std::string label_;
  std::string_view to_space_, from_space_;
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

}  // namespace ferry::detail
