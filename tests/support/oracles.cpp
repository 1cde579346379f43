// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_oracle.hpp"
#include "quantized/rowwise_int8.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

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

std::vector<std::byte> record_of(const std::vector<float>& row) {
  std::vector<std::byte> result(record_bytes(row.size()), std::byte{0});
  float least = std::numeric_limits<float>::infinity(), most = -least;
  bool finite = true;
  for (const float x : row) {
    finite = finite && std::isfinite(x);
    least = std::fmin(least, x);
    most = std::fmax(most, x);
  }
  float scale = 0.0f, offset = 0.0f;
  if (!finite) {
    scale = offset = std::numeric_limits<float>::quiet_NaN();
  } else {
    const double range = static_cast<double>(most) - static_cast<double>(least);
    scale = static_cast<float>(range / 255.0);
    if (std::fpclassify(scale) != FP_NORMAL && 255.0 * static_cast<double>(scale) < range)
      scale = std::nextafter(scale, 1.0f);
    offset = least == 0.0f ? 0.0f : least;
    for (std::size_t c = 0; c < row.size() && scale > 0.0f; ++c) {
      const double code = std::nearbyint((static_cast<double>(row[c]) - static_cast<double>(offset)) /
                                         static_cast<double>(scale));
      if (!(code >= 0.0 && code <= 255.0)) FAIL("the oracle's code is " << code);
      result[c] = static_cast<std::byte>(static_cast<unsigned char>(code));
    }
  }
  std::memcpy(result.data() + row.size(), &scale, 4);
  std::memcpy(result.data() + row.size() + 4, &offset, 4);
  return result;
}

std::vector<double> values_of(const std::vector<std::byte>& records, std::size_t width) {
  std::vector<double> result;
  for (std::size_t begin = 0; begin < records.size(); begin += record_bytes(width)) {
    float scale = 0.0f, offset = 0.0f;
    std::memcpy(&scale, records.data() + begin + width, 4);
    std::memcpy(&offset, records.data() + begin + width + 4, 4);
    for (std::size_t c = 0; c < width; ++c)
      result.push_back(static_cast<double>(offset) +
                       static_cast<double>(scale) * static_cast<double>(records[begin + c]));
  }
  return result;
}

FERRY_TEST_RECORDS(, float)
FERRY_TEST_RECORDS(, double)
FERRY_TEST_RECORDS(, ferry::half_t)
FERRY_TEST_RECORDS(, ferry::bhalf_t)

}  // namespace ferry_test
