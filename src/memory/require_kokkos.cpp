// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/require_kokkos.hpp>

namespace ferry::detail {

void refuse_without_kokkos(std::string_view subject) {
  throw invalid_argument(
      std::string(subject.starts_with("ferry") ? "" : "ferry::")
          .append(subject)
          .append(Kokkos::is_finalized() ? ": Kokkos has been finalized" : ": Kokkos is not initialized"));
}

}  // namespace ferry::detail
