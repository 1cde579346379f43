// SPDX-License-Identifier: Apache-2.0
// One number in braces would leave the second decay rate 0.
// expected-errors: 1 betas are two decay rates; give both, \{0.9, 0.999\} say
// most-lines: 20
#include <ferry/ferry.hpp>

#ifdef FERRY_XFAIL_FIXED
const ferry::optim::adam rule{.betas = {0.9, 0.0}};
#else
const ferry::optim::adam rule{.betas = {0.9}};
#endif
