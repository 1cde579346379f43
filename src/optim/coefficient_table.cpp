// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/coefficient_table.hpp>

namespace ferry::optim::detail {

void coefficient_table::truncate(std::int64_t count) {
  count = std::max<std::int64_t>(0, count);
  if (size_ <= count) return;
  size_ = count;
  cut_ = true;
  if (on_device_ == nullptr) return;
  const std::lock_guard lock(on_device_->guard);
  on_device_->sent = std::min(on_device_->sent, bytes_of(count));
}

std::shared_ptr<void> coefficient_table::clear() {
  truncate(0);
  entries_ = nullptr;
  capacity_ = 0;
  if (on_device_ == nullptr) return nullptr;
  const std::lock_guard lock(on_device_->guard);
  if (on_device_->memory == nullptr || on_device_->memory->size() <= kept_on_device) return nullptr;
  return std::exchange(on_device_->memory, nullptr);
}

table_view coefficient_table::view(std::int64_t first, std::int64_t count) {
  if (on_device_ == nullptr) on_device_ = std::make_shared<device_copy>();
  return {entries_, on_device_, bytes_of(count), first, count};
}

bool coefficient_table::is_viewed() const {
  if (entries_.use_count() > 1) return true;
  std::atomic_thread_fence(std::memory_order_acquire);  // the last view's owner has finished its reads
  return false;
}

void coefficient_table::grow(std::size_t bytes, std::size_t entry) {
  const std::size_t capacity = std::max(bytes + bytes / 2, 16 * entry);
  std::shared_ptr<std::byte[]> longer(new std::byte[capacity]);
  if (bytes != 0) std::memcpy(longer.get(), entries_.get(), bytes);
  entries_ = std::move(longer);
  capacity_ = capacity;
  cut_ = false;
}

}  // namespace ferry::optim::detail
