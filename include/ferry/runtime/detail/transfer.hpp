// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Copies bytes from `source` to `target`, enqueued on `exec` and reported to Kokkos Tools under `label`.
/// Compiled for the execution spaces that Kokkos has.
template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes);

/// Transfers between two spaces, which enqueue() passes to the device in batches. They may run in any order.
/// Nothing is enqueued before enqueue().
template <class Exec>
class transfer_batch {
 public:
  transfer_batch(const Exec& exec, std::string label, std::string_view target_space,
                 std::string_view source_space)
      : exec_(exec), label_(std::move(label)), target_space_(target_space), source_space_(source_space) {}

  void add(void* target, const void* source, std::int64_t bytes) {
    if (bytes <= 0) return;
    targets_.push_back(target);
    sources_.push_back(source);
    bytes_.push_back(static_cast<std::size_t>(bytes));
  }

  [[nodiscard]] bool empty() const { return targets_.empty(); }

  void enqueue() {
    for (std::size_t begin = 0; begin < targets_.size(); begin += at_once) {
      const std::size_t count = std::min(at_once, targets_.size() - begin);
      const auto* sizes = bytes_.data() + begin;
      const transfer_region region(target_space_, targets_[begin], source_space_, sources_[begin],
                                   std::accumulate(sizes, sizes + count, std::size_t{0}), label_);
      execution_backend<Exec>::copy_batch_async(exec_, label_.c_str(), targets_.data() + begin,
                                                sources_.data() + begin, bytes_.data() + begin, count);
    }
    targets_.clear();
    sources_.clear();
    bytes_.clear();
  }

 private:
  static constexpr std::size_t at_once = 64;

  const Exec& exec_;
  std::string label_;
  std::string_view target_space_, source_space_;
  std::vector<void*> targets_;
  std::vector<const void*> sources_;
  std::vector<std::size_t> bytes_;
};

}  // namespace ferry::detail
