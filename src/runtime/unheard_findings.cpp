// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/unheard_findings.hpp>

namespace ferry::detail {

void print_unheard(const std::exception_ptr& lost) noexcept {
  try {
    std::rethrow_exception(lost);
  } catch (const std::exception& said) {
    std::fprintf(stderr, "ferry: nobody waited for this error: %s\n", said.what());
  } catch (...) {
    std::fprintf(stderr, "ferry: nobody waited for an error that is no std::exception\n");
  }
}

void unheard_findings::add(instance_id who, const std::exception_ptr& error) noexcept {
  try {
    const std::lock_guard lock(guard_);
    if (list_.size() < most) {
      list_.push_back({who, error});
      filled_.store(true, std::memory_order_release);
      return;
    }
  } catch (...) {  // no memory for the list
  }
  print_unheard(error);
}

std::exception_ptr unheard_findings::take_one(instance_id who) noexcept {
  std::exception_ptr error;
  const std::lock_guard lock(guard_);
  std::erase_if(list_, [&](entry& finding) {
    if (error != nullptr || finding.who != who) return false;
    error = std::move(finding.error);
    return true;
  });
  filled_.store(!list_.empty(), std::memory_order_release);
  return error;
}

}  // namespace ferry::detail
