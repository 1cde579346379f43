// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ferry {

namespace detail {

/// Locks the pages of user memory for its lifetime.
template <MemorySpace Space>
class locked_pages {
 public:
  locked_pages(const std::string& label, void* data, std::size_t bytes)
      : charge_(Space::name, label, bytes), data_(data), bytes_(bytes) {
    device_backend<Space>::lock_pages(data, bytes);
    charge_.confirm();
  }
  locked_pages(const locked_pages&) = delete;
  locked_pages& operator=(const locked_pages&) = delete;
  ~locked_pages() { device_backend<Space>::unlock_pages(data_, bytes_); }

 private:
  memory_charge charge_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace detail

/// A tensor over memory of the user, which is never copied.
///
///   Space   pinned_space: the pages are locked in place until the tensor is destroyed, and count in the
///           space's statistics and budget; pageable_space: the pages are left as they are
///   label   name of the tensor in messages and statistics
///   memory  the elements in row-major order; must outlive the tensor
///   sizes   the extents, rows first; their product must be the size of the span
///
/// Throws invalid_argument if the span's size is not the product of the extents, and if a device finds some
/// pages locked already, by another adoption, by a tensor of ferry or by other code. Throws budget_exceeded;
/// bad_alloc if the pages can't be locked; device_error for a device that does not accept existing memory, or
/// maps it to another address than the host's.
template <MemorySpace Space, Element T, std::integral... Sizes>
[[nodiscard]] tensor<T, Space> adopt(const std::string& label, std::span<T> memory, Sizes... sizes) {
  static_assert(
      std::same_as<Space, pinned_space> || std::same_as<Space, pageable_space>,
      "ferry: adopt takes host memory over as pinned_space or pageable_space; the other spaces make their own.");
  const auto checked = shape<dynamic_rank>::make(detail::checked_extents(label, sizes...), label, sizeof(T));
  if (checked.size() != memory.size())
    throw invalid_argument(detail::joined("ferry::adopt: '", label, "': a span of ", memory.size(),
                                          " elements is no tensor ", checked.to_string()));
  std::shared_ptr<void> owner;
  if constexpr (std::same_as<Space, pinned_space>)
    if (!memory.empty())
      owner = std::make_shared<detail::locked_pages<Space>>("ferry::" + label, memory.data(),
                                                            memory.size_bytes());
  return tensor<T, Space>(label, checked, memory.data(), std::move(owner));
}

/// As above, with the label "adopted".
template <MemorySpace Space, Element T, std::integral... Sizes>
[[nodiscard]] tensor<T, Space> adopt(std::span<T> memory, Sizes... sizes) {
  return adopt<Space>("adopted", memory, sizes...);
}

}  // namespace ferry
