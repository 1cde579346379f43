#pragma once

#include <string>

namespace ferry_bench {

/// What a verb on rows is measured against: bytes of one call as a multiple of the batch's, what they count, and the
/// ceiling.
struct traffic {
  double factor;
  std::string counts;
  std::string ceiling;
};
inline traffic over_the_link() { return {1.0, "payload", "ceiling.h2d"}; }
inline traffic back_over_the_link() { return {1.0, "payload", "ceiling.d2h"}; }
inline traffic inside_the_device() { return {2.0, "read + write", "ceiling.device_copy"}; }

}  // namespace ferry_bench
