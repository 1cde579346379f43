#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/backend.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ferry {

/// A tensor over the user's memory, which is never copied. For pinned_space the pages are locked in place
/// until the tensor dies; for pageable_space nothing is done to them. The memory must outlive the tensor.
/// Throws invalid_argument where the span does not hold exactly the extents' elements, bad_alloc where its
/// pages can't be locked, for instance because they already are.
template <MemorySpace Space, Element T, std::integral... Sizes>
[[nodiscard]] tensor<T, Space> adopt(std::span<T> memory, Sizes... sizes) {
  static_assert(std::same_as<Space, pinned_space> || std::same_as<Space, pageable_space>,
                "ferry: adopt takes host memory over as pinned_space or pageable_space; the other spaces "
                "make their own.");
  const std::string label = "adopted";
  const auto checked = shape<dynamic_rank>::make(detail::checked_extents(label, sizes...), label, sizeof(T));
  if (checked.size() != memory.size())
    throw invalid_argument("ferry::adopt: a span of " + std::to_string(memory.size()) +
                           " elements is no tensor " + checked.to_string());
  std::shared_ptr<void> owner;
  if constexpr (std::same_as<Space, pinned_space>)
    if (!memory.empty()) {
      device_backend<Space>::lock_pages(memory.data(), memory.size_bytes());
      owner =
          std::shared_ptr<void>(memory.data(), [](void* data) { device_backend<Space>::unlock_pages(data); });
    }
  return tensor<T, Space>(label, checked, memory.data(), std::move(owner));
}

}  // namespace ferry
