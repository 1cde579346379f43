// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include "support/arrays.hpp"

namespace ferry_test {

using profile_holder = ferry::detail::profile_holder<exec_space>;

/// For its time the profile is what the environment says; other tests then find what they would have found
/// without this one.
class fresh_profile {
 public:
  fresh_profile() { profile_holder::forget(); }
  ~fresh_profile() { profile_holder::forget(); }
  fresh_profile(const fresh_profile&) = delete;
  fresh_profile& operator=(const fresh_profile&) = delete;
};

}  // namespace ferry_test
