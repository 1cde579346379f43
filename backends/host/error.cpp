// SPDX-License-Identifier: Apache-2.0
#include "error.hpp"

namespace ferry::host {

void throw_bad_alloc(const char* space, const std::string& label, std::size_t bytes, const std::string& why) {
  throw bad_alloc(detail::joined("ferry: no ", bytes, " bytes in ", space, " for '", label, "': ", why));
}

}  // namespace ferry::host
