// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report.hpp"
#include "session.hpp"
#include "tables.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry_bench {

/// Measure of a verb on rows: bytes of one call as a multiple of the batch's, their meaning, and the
/// ceiling.
struct traffic {
  double factor;
  std::string counts;
  std::string ceiling;
};
inline traffic over_the_link() { return {1.0, "payload", "ceiling.h2d"}; }
inline traffic back_over_the_link() { return {1.0, "payload", "ceiling.d2h"}; }
inline traffic inside_the_device() { return {2.0, "read + write", "ceiling.device_copy"}; }

/// The figure of a verb on `batch`, still to be timed.
template <class Batch>
figure figure_of(session& run, std::string name, facts setting, const Batch& batch, int burst,
                 const traffic& moved) {
  constexpr std::size_t element_bytes = sizeof(typename Batch::value_type);
  figure result;
  result.name = std::move(name);
  result.setting =
      std::move(setting) + facts{{"n", static_cast<std::int64_t>(batch.rows())},
                                 {"row_bytes", static_cast<std::int64_t>(batch.width() * element_bytes)},
                                 {"burst", std::int64_t{burst}}};
  result.bytes = static_cast<double>(batch.size() * element_bytes) * moved.factor;
  result.counts = moved.counts;
  result.ceiling = run.ceiling(moved.ceiling);
  return result;
}

}  // namespace ferry_bench
