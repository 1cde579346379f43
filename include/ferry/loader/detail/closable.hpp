// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>

#include <memory>
#include <utility>

namespace ferry::detail {

/// As in io/detail/library.hpp.
extern const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;
[[gnu::used, gnu::retain]] const char* const loader_library =
    &the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;

/// Something with threads, instances and memory that may not outlive Kokkos.
class closable {
 public:
  closable() = default;
  closable(const closable&) = delete;
  closable& operator=(const closable&) = delete;
  virtual ~closable() = default;
  virtual void close() noexcept = 0;

  /// False in a child process, which has none of the threads.
  [[nodiscard]] bool in_own_process() const { return process_.is_here(); }

 private:
  process_mark process_;
};

/// Kokkos::finalize closes the prefetcher, if it still lives, before the engine of Exec.
template <ExecutionSpace Exec>
void close_at_finalize(const std::shared_ptr<closable>& prefetcher);

/// Owns a prefetcher's inside. In a child process it leaks it: the threads are not there to be joined, and
/// they may have held its locks.
class closing_owner {
 public:
  explicit closing_owner(std::shared_ptr<closable> owned);
  closing_owner(closing_owner&& source) noexcept;
  closing_owner& operator=(closing_owner&& source) noexcept;
  ~closing_owner();

 protected:
  [[nodiscard]] closable* get() const { return owned_.get(); }

 private:
  std::shared_ptr<closable> owned_;
};

template <class Owned, class Exec>
class closing : public closing_owner {
 public:
  explicit closing(std::shared_ptr<Owned> owned) : closing_owner(owned) {
    close_at_finalize<Exec>(std::move(owned));
  }
  [[nodiscard]] Owned* operator->() const { return static_cast<Owned*>(get()); }
};

}  // namespace ferry::detail
