// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <Kokkos_Core.hpp>

#include <string>
#include <string_view>

namespace ferry::detail {

[[noreturn, gnu::cold]] void refuse_without_kokkos(std::string_view subject);

/// Throws invalid_argument before Kokkos::initialize and after Kokkos::finalize. A host execution space would
/// run kernels then, and memory and threads would outlive what releases them. `subject` starts the sentence:
/// a verb or a label. Returns it, for lists of initialisers.
template <class Text>
const Text& require_kokkos(const Text& subject) {
  if (!Kokkos::is_initialized()) detail::refuse_without_kokkos(subject);
  return subject;
}

}  // namespace ferry::detail
