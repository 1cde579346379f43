// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>

namespace ferry::detail {

/// Calls a function in a thread of its own and waits for its end. Rethrows its exception.
void call_in_thread(function_ref<void()> function);

}  // namespace ferry::detail
