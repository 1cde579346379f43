// SPDX-License-Identifier: Apache-2.0
// The rate comes first, and the steps are counted.
// expected-error: a schedule is called as schedule\(lr, step, ...\): the step is an integer
#include <ferry/optim/schedules.hpp>

#include <cstdint>

double refused(std::int64_t step) {
#ifdef FERRY_XFAIL_FIXED
  return ferry::optim::cosine_annealing_lr(1e-3, step, 100);
#else
  return ferry::optim::cosine_annealing_lr(step, 1e-3, 100);
#endif
}
