// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/timed_work.hpp>

#include "trace_home.hpp"
#include "trace_text.hpp"

#include <chrono>
#include <utility>

namespace ferry::detail {

std::int64_t trace_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void trace_work(std::unique_ptr<timed_work> work, std::string_view label, const char* category, int device,
                std::uint64_t stream) {
  trace_name name;
  name.append_escaped(label);
  trace_home::get().log.load()->add(std::move(work), name, category, device, stream);
}

}  // namespace ferry::detail
