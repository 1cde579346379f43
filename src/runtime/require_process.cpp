// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/require_process.hpp>

#include <ferry/error.hpp>

namespace ferry::detail {

void refuse_lost_kokkos(std::string_view call) {
  constexpr std::string_view prefix = "ferry::";
  if (call.substr(0, prefix.size()) == prefix) call.remove_prefix(prefix.size());
  throw invalid_argument(joined(
      prefix, call,
      ": this process was forked after Kokkos::initialize, so the threads and devices of Kokkos stay with the parent, and its kernels would wait for them for ever; fork before Kokkos::initialize, or start the process by exec (multiprocessing: 'spawn')"));
}

}  // namespace ferry::detail
