// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// The part of a tensor that does not depend on its elements: label, memory and the record of its use.
template <MemorySpace Space>
class tensor_memory {
 public:
  tensor_memory() noexcept = default;
  /// Allocates.
  tensor_memory(std::shared_ptr<const std::string> label, std::size_t bytes, device placement);
  /// Keeps the owner of memory that exists.
  tensor_memory(std::string label, std::shared_ptr<void> owner, device placement);
  tensor_memory(tensor_memory&& source) noexcept;
  tensor_memory& operator=(tensor_memory&& source) noexcept;
  ~tensor_memory() { end(); }

  [[nodiscard]] const std::string& label() const noexcept;
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept { return label_; }
  [[nodiscard]] const std::shared_ptr<allocation<Space>>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<access_tracker>& accesses() const noexcept { return accesses_; }
  /// `shape`: the extents as text; `data`: the first element.
  [[nodiscard]] std::string describe(const std::string& shape, const void* data) const;

 private:
  /// The tensor ends, or takes other memory.
  void end() noexcept;

  std::shared_ptr<const std::string> label_;  // stays when the memory is moved, for messages
  std::shared_ptr<allocation<Space>> memory_;
  std::shared_ptr<void> owner_;
  std::shared_ptr<access_tracker> accesses_;
};

template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(std::shared_ptr<const std::string> label, std::size_t bytes,
                                    device placement)
    : label_(std::move(label)),
      memory_([&] {
        if constexpr (has_tensor_pool<Space>)
          return pooled_memory<Space>::allocate("tensor::" + *label_, bytes, placement.id);
        else
          return std::make_shared<allocation<Space>>("tensor::" + *label_, bytes, placement.id);
      }()),
      accesses_(std::make_shared<access_tracker>(memory_->device())) {}
template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(std::string label, std::shared_ptr<void> owner, device placement)
    : label_(std::make_shared<const std::string>(std::move(label))),
      owner_(std::move(owner)),
      accesses_(std::make_shared<access_tracker>(placement.id)) {}
template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(tensor_memory&& source) noexcept
    : label_(source.label_),
      memory_(std::move(source.memory_)),
      owner_(std::move(source.owner_)),
      accesses_(std::move(source.accesses_)) {}
template <MemorySpace Space>
tensor_memory<Space>& tensor_memory<Space>::operator=(tensor_memory&& source) noexcept {
  if (this != &source) {
    std::destroy_at(this);
    std::construct_at(this, std::move(source));
  }
  return *this;
}

template <MemorySpace Space>
void tensor_memory<Space>::end() noexcept {
  if constexpr (has_tensor_pool<Space>)
    if (memory_ != nullptr) pooled_memory<Space>::end(std::move(memory_), *accesses_);
}

template <MemorySpace Space>
const std::string& tensor_memory<Space>::label() const noexcept {
  static const std::string none;
  return label_ ? *label_ : none;
}

template <MemorySpace Space>
std::string tensor_memory<Space>::describe(const std::string& shape, const void* data) const {
  std::string text = joined("'", label(), "' ", shape, " in ");
  if (memory_ != nullptr) return text + memory_->describe();
  return joined(text, Space::name, (data != nullptr ? ": adopted memory" : ": no memory"));
}

// The library holds those of ferry's spaces; a space of a user's compiles its own.
extern template class tensor_memory<device_space>;
extern template class tensor_memory<pinned_space>;
extern template class tensor_memory<mapped_space>;
extern template class tensor_memory<pageable_space>;

}  // namespace ferry::detail
