#pragma once

#include <ferry/execution/backend.hpp>
#include <ferry/memory/tools.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Transfers between two spaces that are handed to the device many at a time; they may run in any order among
/// themselves. What was added last is enqueued by enqueue(), not by the destructor: it may throw.
template <class Exec>
class transfer_batch {
 public:
  transfer_batch(const Exec& exec, std::string label, std::string_view to_space, std::string_view from_space)
      : exec_(exec), label_(std::move(label)), to_space_(to_space), from_space_(from_space) {}

  void add(void* to, const void* from, std::int64_t bytes) {
    if (bytes <= 0) return;
    if (count_ == to_.size()) enqueue();
    to_[count_] = to;
    from_[count_] = from;
    bytes_[count_] = static_cast<std::size_t>(bytes);
    all_ += bytes_[count_++];
  }

  void enqueue() {
    if (count_ == 0) return;
    const transfer_region region(to_space_, to_[0], from_space_, from_[0], all_, label_);
    execution_backend<Exec>::copy_batch_async(exec_, label_.c_str(), to_.data(), from_.data(), bytes_.data(),
                                              count_);
    count_ = 0;
    all_ = 0;
  }

 private:
  static constexpr std::size_t capacity = 64;

  const Exec& exec_;
  std::string label_;
  std::string_view to_space_, from_space_;
  std::array<void*, capacity> to_;
  std::array<const void*, capacity> from_;
  std::array<std::size_t, capacity> bytes_;
  std::size_t count_ = 0;
  std::size_t all_ = 0;
};

}  // namespace ferry::detail
