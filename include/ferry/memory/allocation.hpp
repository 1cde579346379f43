#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/backend.hpp>
#include <ferry/memory/tools.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace ferry {

/// Owning, move-only block of bytes in one memory space. Holds exactly the asked number of bytes.
/// Throws ferry::bad_alloc, naming space, label and size.
template <MemorySpace Space>
class allocation {
 public:
  allocation() = default;

  allocation(std::string label, std::size_t bytes) : label_("ferry::" + std::move(label)) {
    static_assert(
        requires { sizeof(device_backend<Space>); },
        "ferry: no backend provides memory here; include <ferry/ferry.hpp>.");
    if (bytes == 0) return;
    block_ = device_backend<Space>::allocate(Space{}, bytes, label_);
    detail::report_allocation(Space::name, label_, block_.data, block_.bytes);
  }

  allocation(allocation&& other) noexcept
      : label_(std::move(other.label_)), block_(std::exchange(other.block_, memory_block{})) {}

  allocation& operator=(allocation&& other) noexcept {
    if (this != &other) {
      release();
      label_ = std::move(other.label_);
      block_ = std::exchange(other.block_, memory_block{});
    }
    return *this;
  }

  ~allocation() { release(); }

  [[nodiscard]] void* data() const noexcept { return block_.data; }
  [[nodiscard]] std::size_t bytes() const noexcept { return block_.bytes; }

  /// How the bytes were obtained, in words: names the calls and the fallback that was taken, if one was.
  [[nodiscard]] std::string describe() const {
    return std::string(Space::name) + ": " + device_backend<Space>::describe(Space{}, block_);
  }

 private:
  void release() noexcept {
    if (block_.data == nullptr) return;
    detail::report_deallocation(Space::name, label_, block_.data, block_.bytes);
    device_backend<Space>::deallocate(Space{}, block_);
    block_ = {};
  }

  std::string label_;
  memory_block block_;
};

}  // namespace ferry
