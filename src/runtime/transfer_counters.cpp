// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/transfer_counters.hpp>

#include <ferry/memory/detail/process_wide.hpp>

namespace ferry::detail {

transfer_counters& transfer_counters::get() {
  static transfer_counters& counters = process_wide<transfer_counters>();
  return counters;
}

}  // namespace ferry::detail
