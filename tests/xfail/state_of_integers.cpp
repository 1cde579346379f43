// SPDX-License-Identifier: Apache-2.0
// Tables of integers can't be trained.
// expected-error: optimizer state is kept in float, double, half_t or bhalf_t elements only
#include <ferry/ferry.hpp>

#include <cstdint>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
#else
  const ferry::tensor<std::int32_t, ferry::mapped_space> table("table", 4, 4);
#endif
  const auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  static_cast<void>(state.field("exp_avg"));
}
