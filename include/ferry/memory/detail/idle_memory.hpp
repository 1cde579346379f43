#pragma once

#include <cstddef>

namespace ferry::detail {

/// What to do about blocks whose last user's work has not ended yet.
enum class in_flight { skip, wait };

/// What a pool offers to those who need memory: the blocks that nobody has on loan. Thread-safe.
class idle_memory {
 public:
  idle_memory() = default;
  idle_memory(const idle_memory&) = delete;
  idle_memory& operator=(const idle_memory&) = delete;
  virtual ~idle_memory() = default;

  [[nodiscard]] virtual std::size_t idle_bytes() const = 0;

  /// Gives blocks back to the system until `enough` bytes are free or none is left; returns the bytes freed.
  virtual std::size_t trim(std::size_t enough, in_flight effort) = 0;
};

}  // namespace ferry::detail
