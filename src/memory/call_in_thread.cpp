// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/call_in_thread.hpp>

#include <exception>
#include <thread>

namespace ferry::detail {

void call_in_thread(function_ref<void()> function) {
  std::exception_ptr error;
  std::thread([&]() noexcept {
    try {
      function();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace ferry::detail
