// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_oracle.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <cstdint>

namespace ferry_test {

FERRY_TEST_ORACLES(, float)
FERRY_TEST_ORACLES(, double)
FERRY_TEST_ORACLES(, ferry::half_t)
FERRY_TEST_ORACLES(, ferry::bhalf_t)
FERRY_TEST_ORACLES(, std::int32_t)
FERRY_TEST_ORACLES(, std::int64_t)

FERRY_TEST_VALUES(, float)
FERRY_TEST_VALUES(, double)
FERRY_TEST_VALUES(, ferry::half_t)
FERRY_TEST_VALUES(, ferry::bhalf_t)
FERRY_TEST_VALUES(, std::int32_t)
FERRY_TEST_VALUES(, std::int64_t)
FERRY_TEST_INDICES(, std::int32_t)
FERRY_TEST_INDICES(, std::uint32_t)
FERRY_TEST_INDICES(, std::int64_t)
FERRY_TEST_INDICES(, std::uint64_t)

FERRY_TEST_PLANS(, std::int32_t)
FERRY_TEST_PLANS(, std::uint32_t)
FERRY_TEST_PLANS(, std::int64_t)
FERRY_TEST_PLANS(, std::uint64_t)

}  // namespace ferry_test
