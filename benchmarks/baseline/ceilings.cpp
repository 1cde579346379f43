// SPDX-License-Identifier: Apache-2.0
#include "../support/session.hpp"

namespace ferry_bench {
namespace {

void ceilings(session& run) {
  for (const char* name :
       {"ceiling.h2d", "ceiling.d2h", "ceiling.link_both_ways", "ceiling.device_copy", "ceiling.triad"})
    run.ceiling(name);
}

const registration mine{"ceilings", ceilings};

}  // namespace
}  // namespace ferry_bench
