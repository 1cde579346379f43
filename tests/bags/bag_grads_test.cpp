// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/bags.hpp>

#include <catch2/matchers/catch_matchers_floating_point.hpp>

/// The norm of the gradients that bags hand to rows, against plain loops in double over all positions.
namespace ferry_test::bag_grads_test {

using Catch::Matchers::WithinRel;
namespace optim = ferry::optim;

/// Random bags, some of them empty, and what EmbeddingBag's backward pass makes of their gradients.
struct bag_batch {
  static constexpr std::size_t rows = 23, width = 6;

  std::vector<std::int64_t> indices;
  std::vector<std::int32_t> offsets{0};
  std::vector<float> weights, pooled;

  explicit bag_batch(std::mt19937_64& random, std::size_t bags) {
    for (std::size_t b = 0; b < bags; ++b) {
      for (std::size_t left = random() % 5; left > 0; --left)
        indices.push_back(static_cast<std::int64_t>(random() % rows));
      offsets.push_back(static_cast<std::int32_t>(indices.size()));
    }
    weights = values<float>(random, indices.size());
    pooled = values<float>(random, bags * width);
  }
  [[nodiscard]] std::size_t bags() const { return offsets.size() - 1; }

  /// `share(bag, position, column)` is the factor of the bag's gradient.
  template <class Share>
  [[nodiscard]] double norm(const Share& share) const {
    std::map<std::int64_t, std::vector<double>> sums;
    for (std::size_t b = 0; b < bags(); ++b)
      for (auto p = static_cast<std::size_t>(offsets[b]); p < static_cast<std::size_t>(offsets[b + 1]); ++p) {
        if (indices[p] < 0 || indices[p] >= static_cast<std::int64_t>(rows)) continue;
        auto& row = sums[indices[p]];
        row.resize(width);
        for (std::size_t c = 0; c < width; ++c)
          row[c] += share(b, p, c) * static_cast<double>(pooled[b * width + c]);
      }
    double sum = 0;
    for (const auto& row : sums)
      for (const double x : row.second) sum += x * x;
    return std::sqrt(sum);
  }
  /// The number of positions of a bag that name a row.
  [[nodiscard]] double size(std::size_t bag) const {
    double count = 0;
    for (auto p = static_cast<std::size_t>(offsets[bag]); p < static_cast<std::size_t>(offsets[bag + 1]); ++p)
      count += indices[p] >= 0 && indices[p] < static_cast<std::int64_t>(rows) ? 1 : 0;
    return count;
  }
};

TEST_CASE("the norm of gradients of bags is that of the rows' sums", "[bags][grad_norm]") {
  const exec_space exec;
  auto random = generator(77);
  for (const std::size_t bags : {1u, 7u, 300u}) {
    bag_batch batch(random, bags);
    CAPTURE(bags, batch.indices.size());
    const auto plan = ferry::make_plan(exec, batch.indices, bag_batch::rows);
    const auto offsets = make<ferry::device_space>("offsets", batch.offsets);
    const auto weights = make<ferry::mapped_space>("weights", batch.weights);
    auto pooled = make<ferry::device_space>("pooled", bags, bag_batch::width, batch.pooled);
    const auto bias = make<ferry::device_space>("bias", std::vector<float>{3, 4});

    const double sum = batch.norm([](auto, auto, auto) { return 1.0; });
    const double mean = batch.norm([&](auto b, auto, auto) { return 1 / batch.size(b); });
    const auto weight_of = [&](std::size_t p) { return static_cast<double>(batch.weights[p]); };
    const double weighted = batch.norm([&](auto, auto p, auto) { return weight_of(p); });
    const double weighted_mean =
        batch.norm([&](auto b, auto p, auto) { return weight_of(p) / batch.size(b); });
    CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})).wait(),
               WithinRel(sum, 1e-12));
    CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled)).wait(),
               WithinRel(mean, 1e-12));
    CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, weights, ferry::pooling::sum{}))
                   .wait(),
               WithinRel(weighted, 1e-12));
    CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, batch.offsets, pooled, weights), bias).wait(),
               WithinRel(std::hypot(weighted_mean, 5.0), 1e-12));

    const double limit = sum / 3, factor = limit / (sum + 1e-6);
    CHECK_THAT(
        optim::clip_grad_norm(exec, limit, optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{}))
            .wait(),
        WithinRel(sum, 1e-12));
    if (sum == 0) continue;
    const auto scaled = take(pooled);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      REQUIRE_THAT(scaled[i],
                   WithinRel(static_cast<float>(static_cast<double>(batch.pooled[i]) * factor), 1e-6f));
    CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})).wait(),
               WithinRel(limit, 1e-5));
  }
}

TEST_CASE("bags of a number of positions, left out positions and maxima in the norm", "[bags][grad_norm]") {
  const exec_space exec;
  auto random = generator(78);
  bag_batch batch(random, 0);
  constexpr std::size_t bags = 40, hotness = 3;
  batch.indices = indices<std::int64_t>(random, bags * hotness, bag_batch::rows);
  for (std::size_t b = 1; b <= bags; ++b) batch.offsets.push_back(static_cast<std::int32_t>(b * hotness));
  for (std::size_t p = 0; p < batch.indices.size(); p += 7) batch.indices[p] = -1;
  batch.pooled = values<float>(random, bags * bag_batch::width);
  const auto plan = ferry::make_plan(exec, batch.indices, bag_batch::rows, ferry::bounds::skip{});
  const auto pooled = make<ferry::device_space>("pooled", bags, bag_batch::width, batch.pooled);
  const double mean = batch.norm([&](auto b, auto, auto) { return 1 / batch.size(b); });
  CHECK_THAT(optim::grad_norm(exec, optim::bag_grads(plan, 3, pooled)).wait(), WithinRel(mean, 1e-12));

  const auto table = make<ferry::device_space>("table", bag_batch::rows, bag_batch::width,
                                               values<float>(random, bag_batch::rows * bag_batch::width));
  auto maxima = make<ferry::device_space>("maxima", bags, bag_batch::width,
                                          std::vector<float>(bags * bag_batch::width, -1.0f));
  auto positions = make<ferry::device_space>("positions", bags, bag_batch::width,
                                             std::vector<std::int32_t>(bags * bag_batch::width, -7));
  ferry::gather_bags(exec, table, plan, 3, maxima, positions, ferry::pooling::max{}).wait();
  const auto chosen = take(positions);
  const double largest = batch.norm([&](auto b, auto p, auto c) {
    return chosen[b * bag_batch::width + c] == static_cast<std::int32_t>(p) ? 1.0 : 0.0;
  });
  CHECK(largest > 0);
  CHECK_THAT(
      optim::grad_norm(exec, optim::bag_grads(plan, 3, pooled, positions, ferry::pooling::max{})).wait(),
      WithinRel(largest, 1e-12));
}

TEST_CASE("the norm of means over bags of any length, of which positions are left out", "[bags][grad_norm]") {
  const exec_space exec;
  auto random = generator(79);
  bag_batch batch(random, 0);
  const std::vector<std::int32_t> lengths{0, 31, 32, 33, 0, 64, 5000, 1, 2, 3, 40, 0};
  for (const std::int32_t length : lengths) batch.offsets.push_back(batch.offsets.back() + length);
  batch.indices =
      indices<std::int64_t>(random, static_cast<std::size_t>(batch.offsets.back()), bag_batch::rows);
  for (auto& index : batch.indices)
    if (random() % 4 == 0) index = -1;
  for (std::size_t p = 31; p < 63; ++p) batch.indices[p] = -1;  // a bag without a row
  batch.pooled = values<float>(random, lengths.size() * bag_batch::width);
  const auto plan = ferry::make_plan(exec, batch.indices, bag_batch::rows, ferry::bounds::skip{});
  const auto pooled = make<ferry::device_space>("pooled", lengths.size(), bag_batch::width, batch.pooled);
  const auto offsets = make<ferry::device_space>("offsets", batch.offsets);
  const double mean = batch.norm([&](auto b, auto, auto) { return 1 / batch.size(b); });
  CHECK_THAT(ferry::optim::grad_norm(exec, ferry::optim::bag_grads(plan, offsets, pooled)).wait(),
             WithinRel(mean, 1e-12));
}

TEST_CASE("bag_grads refuses what does not fit", "[bags][grad_norm]") {
  const exec_space exec;
  const std::vector<std::int64_t> indices{1, 0, 1};
  const std::vector<std::int32_t> offsets{0, 2}, many{0, 1, 2, 3, 3};
  const auto pooled = make<ferry::mapped_space>("pooled", 2, 2, std::vector<float>(4, 1.0f));
  const auto none = make<ferry::mapped_space>("none", 0, 2, std::vector<float>());
  const std::vector<float> weights(2);
  const auto plan = ferry::make_plan(exec, indices, 4);
  const auto refused = [&](const auto& grads) {
    return said<ferry::invalid_argument>([&] { (void)optim::grad_norm(exec, grads).wait(); });
  };
  CHECK(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})).wait() > 0);
  CHECK(
      has(refused(optim::bag_grads(plan, many, pooled)), "5 offsets were given for the 2 bags of 'pooled'"));
  CHECK(has(refused(optim::bag_grads(plan, 2, pooled)), "3 indices were given for the 2 bags of 2"));
  CHECK(has(refused(optim::bag_grads(plan, offsets, pooled, weights)), "2 weights for 3 indices"));
  CHECK(has(refused(optim::bag_grads(ferry::row_plan(), 0, pooled)), "the plan of 'pooled' [2 x 2]"));
  CHECK(has(refused(optim::bag_grads(plan, 1, none)), "3 indices"));
}

}  // namespace ferry_test::bag_grads_test
