// SPDX-License-Identifier: Apache-2.0
#include <ferry/bags/detail/bag_arguments.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>

namespace ferry::detail {

void require_a_bag(const char* verb, std::int64_t positions, const untyped_array& pooled) {
  if (pooled.shape.rows() == 0 && positions != 0)
    throw invalid_argument(joined({"ferry::", verb, ": ", positions, " indices were given, but ",
                                   pooled.note().describe(), " has no bags"}));
}

void require_bags(const char* verb, std::int64_t hotness, std::int64_t positions,
                  const untyped_array& pooled) {
  const std::int64_t bags = pooled.shape.rows();
  const bool fits = hotness >= 0 && (bags == 0 || hotness <= positions / bags) && bags * hotness == positions;
  if (!fits)
    throw invalid_argument(joined({"ferry::", verb, ": ", positions, " indices were given for the ", bags,
                                   " bags of ", hotness, " positions of ", pooled.note().describe()}));
}

void require_bags(const char* verb, const untyped_array& offsets, std::int64_t positions,
                  const untyped_array& pooled) {
  const std::int64_t bags = pooled.shape.rows(), count = offsets.shape.rows();
  require_rank_one(verb, offsets, "offsets");
  if (count != bags && count != bags + 1)
    throw invalid_argument(joined(
        {"ferry::", verb, ": ", count, " offsets were given for the ", bags, " bags of ",
         pooled.note().describe(),
         ", must be one for each bag, with or without one more for the last end; or a plain integer, the positions of every bag"}));
  if (count == 0) require_a_bag(verb, positions, pooled);
}

void require_weights(const char* verb, const untyped_array& weights, std::int64_t positions) {
  require_rank_one(verb, weights, "weights");
  if (weights.shape.rows() != positions)
    throw invalid_argument(joined({"ferry::", verb, ": ", weights.note().describe(), " has ",
                                   weights.shape.rows(), " weights for ", positions, " indices"}));
}

void require_maxima(const char* verb, const untyped_array& maxima, const untyped_array& pooled) {
  require_dense_rows(verb, maxima);
  if (maxima.shape.rows() != pooled.shape.rows() || maxima.shape.width() != pooled.shape.width())
    throw invalid_argument(
        joined({"ferry::", verb, ": the positions of the maxima ", maxima.note().describe(),
                " need the extents of ", pooled.note().describe()}));
}

void refuse_positions(const char* verb, const untyped_array& maxima, std::int64_t positions) {
  throw invalid_argument(
      joined({"ferry::", verb, ": ", maxima.note().describe(), " can't hold the positions of ", positions,
              " indices; its elements must be int64"}));
}

}  // namespace ferry::detail
