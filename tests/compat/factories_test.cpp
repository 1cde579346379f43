// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/compat/speedtorch.hpp>

#include <filesystem>

namespace ferry_test::factories_test {

constexpr std::size_t classes = 61, width = 9;

/// The different indices, ascending, with their place.
std::map<std::int64_t, std::size_t> places_of(const std::vector<std::int64_t>& indices) {
  std::map<std::int64_t, std::size_t> places;
  for (const auto index : indices) places.emplace(index, 0);
  std::size_t next = 0;
  for (auto& [row, place] : places) place = next++;
  return places;
}

std::string scratch_file(const char* name) {
  return (std::filesystem::temp_directory_path() / ("ferry_" + std::string(name))).string();
}

TEMPLATE_TEST_CASE("a model switcher sends the different rows of a batch and brings them back",
                   "[speedtorch]", ferry::device_space, ferry::pinned_space, ferry::mapped_space,
                   ferry::pageable_space) {
  auto random = generator(71);
  const exec_space exec;
  ferry::speedtorch::model_factory<float, TestType> model("words", classes, width);
  auto table = values<float>(random, classes * width);
  put(model.table(), table);
  for (const std::size_t negatives : {std::size_t{0}, std::size_t{200}, std::size_t{30}}) {
    const auto positive = indices<std::int64_t>(random, 90, classes);
    const auto negative = indices<std::int32_t>(random, negatives, classes);
    auto total = positive;
    total.insert(total.end(), negative.begin(), negative.end());
    const auto places = places_of(total);

    if (negatives == 0)
      model.before_forward_pass(exec, positive).wait();
    else
      model.before_forward_pass(exec, positive, negative).wait();
    REQUIRE(model.weight().rows() == places.size());
    std::vector<float> weight(places.size() * width);
    ferry::copy(exec, model.weight(), weight).wait();
    std::vector<std::int64_t> inputs(positive.size()), noise(negative.size());
    ferry::copy(exec, model.positive_inputs(), inputs).wait();
    ferry::copy(exec, model.negative_inputs(), noise).wait();
    inputs.insert(inputs.end(), noise.begin(), noise.end());
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < total.size(); ++k) {
      wrong += inputs[k] == static_cast<std::int64_t>(places.at(total[k])) ? 0 : 1;
      for (std::size_t j = 0; j < width; ++j)
        wrong += weight[static_cast<std::size_t>(inputs[k]) * width + j] ==
                         table[static_cast<std::size_t>(total[k]) * width + j]
                     ? 0
                     : 1;
    }
    CHECK(wrong == 0);

    for (auto& value : weight) value = 2.0f * value + 1.0f;
    ferry::copy(exec, weight, model.weight()).wait();
    model.after_optimizer_step(exec).wait();
    for (const auto& [row, place] : places)
      for (std::size_t j = 0; j < width; ++j)
        table[static_cast<std::size_t>(row) * width + j] = weight[place * width + j];
    CHECK(same_bits(take(model.table()), table));
  }
}

TEST_CASE("a bad index of a model switcher is named, and the batch before is kept", "[speedtorch]") {
  const exec_space exec;
  ferry::speedtorch::model_factory<float, ferry::mapped_space> model("words", classes, width);
  CHECK_THROWS_MATCHES(model.after_optimizer_step(exec), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'words' has no batch yet")));
  model.uniform_distribution_init(exec, -1.0, 1.0, 3);
  const auto before = take(model.table());
  model.before_forward_pass(exec, std::vector<int>{5, 3}).wait();
  CHECK_THROWS_MATCHES(model.before_forward_pass(exec, std::vector<int>{1, 2}, std::vector<int>{4, 61}),
                       ferry::out_of_range,
                       MessageMatches(ContainsSubstring("61") && ContainsSubstring("words")));
  CHECK(model.weight().rows() == 2);
  model.after_optimizer_step(exec).wait();
  CHECK(same_bits(take(model.table()), before));
}

TEST_CASE("an optimizer switcher steps as the fused step does", "[speedtorch]") {
  auto random = generator(72);
  const exec_space exec;
  using model_type = ferry::speedtorch::model_factory<float, ferry::pinned_space>;
  model_type fused("fused", classes, width), by_hand("by hand", classes, width);
  const auto start = values<float>(random, classes * width);
  put(fused.table(), start);
  put(by_hand.table(), start);
  const ferry::optim::adagrad rule{.lr = 0.1, .eps = 1e-10};
  ferry::speedtorch::optimizer_factory adagrad(rule, fused);
  ferry::speedtorch::optimizer_factory switched(rule, by_hand);
  for (int step = 0; step < 4; ++step) {
    const auto batch = indices<std::int64_t>(random, 40, classes);
    fused.before_forward_pass(exec, batch).wait();
    by_hand.before_forward_pass(exec, batch).wait();
    const std::size_t rows = fused.weight().rows();
    const auto gradient = values<float>(random, rows * width);
    ferry::tensor<float, ferry::device_space> gradients("gradients", rows, width);
    put(gradients, gradient);
    adagrad.step(exec, gradients).wait();

    // torch.optim.Adagrad on the rows that visit device memory.
    switched.before_forward_pass(exec).wait();
    std::vector<float> weight(rows * width), sum(rows * width);
    ferry::copy(exec, by_hand.weight(), weight).wait();
    ferry::copy(exec, switched.rows(0), sum).wait();
    for (std::size_t i = 0; i < weight.size(); ++i) {
      sum[i] += gradient[i] * gradient[i];
      weight[i] -= 0.1f * gradient[i] / (std::sqrt(sum[i]) + 1e-10f);
    }
    ferry::copy(exec, weight, by_hand.weight()).wait();
    ferry::copy(exec, sum, switched.rows(0)).wait();
    switched.after_optimizer_step(exec).wait();
    by_hand.after_optimizer_step(exec).wait();
  }
  const auto expected = take(by_hand.table()), result = take(fused.table());
  const auto expected_sum = take(switched.field(0)), found_sum = take(adagrad.field(0));
  double worst = 0.0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(result[i]) - expected[i]));
    worst = std::max(worst, std::abs(static_cast<double>(found_sum[i]) - expected_sum[i]));
  }
  CHECK(worst < 1e-5);
  CHECK_FALSE(same_bits(result, start));
}

TEST_CASE("switchers and gadgets are saved and loaded", "[speedtorch]") {
  auto random = generator(73);
  const exec_space exec;
  const auto file = scratch_file("speedtorch_test.npy");
  ferry::speedtorch::model_factory<float, ferry::pageable_space> model("words", classes, width);
  const auto table = values<float>(random, classes * width);
  put(model.table(), table);
  model.save(file);
  model.zeros_init(exec);
  const auto* const before = model.table().data();
  model.load(file);
  CHECK(model.table().data() == before);  // checkpoints and views refer to it
  CHECK(same_bits(take(model.table()), table));
  ferry::speedtorch::model_factory<float> second("other", classes + 1, width);
  second.zeros_init(exec);
  CHECK_THROWS_MATCHES(second.load(file), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'other' [62 x 9]")));

  ferry::speedtorch::data_gadget<float, ferry::mapped_space> gadget(file);
  const std::vector<int> ids{7, 0, 60};
  const auto rows = gadget.get_data(exec, ids).get();
  std::vector<float> expected;
  for (const int row : ids)
    expected.insert(expected.end(), table.begin() + row * static_cast<int>(width),
                    table.begin() + (row + 1) * static_cast<int>(width));
  CHECK(same_bits(take(rows), expected));
  gadget.insert_data(exec, rows, std::vector<int>{1, 2, 3}).wait();
  auto changed = table;
  std::copy(expected.begin(), expected.end(), changed.begin() + static_cast<int>(width));
  CHECK(same_bits(take(gadget.table()), changed));
  gadget.save(file);
  CHECK(same_bits(take(ferry::speedtorch::data_gadget<float, ferry::pinned_space>(file).table()), changed));
  std::filesystem::remove(file);
}

}  // namespace ferry_test::factories_test
