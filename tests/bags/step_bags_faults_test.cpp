// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

namespace ferry_test::step_bags_faults_test {

constexpr ferry::optim::adam adam{.lr = 0.05};

/// A table that must stay as it is.
struct untouched {
  bag_batch<float> input;
  ferry::tensor<float, ferry::device_space> table, grads;
  decltype(ferry::optim::make_state(adam, std::declval<ferry::tensor<float, ferry::device_space>&>())) state;

  explicit untouched(std::mt19937_64&& random) : input(random, 40, 12, 31) {
    input.offsets.back() += 3;
    for (int i = 0; input.ids.size() < input.offsets.back(); ++i) input.ids.push_back(i);
    table = make<ferry::device_space>("table", input.rows, input.width, input.values);
    grads = make<ferry::device_space>("grads", input.bags, input.width, input.grads);
    state = ferry::optim::make_state(adam, table);
  }
  template <class Error, class... Arguments>
  void refuses(const std::string& text, Arguments&&... arguments) {
    CHECK_THROWS_MATCHES(ferry::step_bags(exec_space{}, adam, table, state, arguments...).wait(), Error,
                         MessageMatches(ContainsSubstring("ferry::step_bags: ") && ContainsSubstring(text)));
    CHECK(same_bits(take(table), input.values));
    CHECK(state.steps() == 0);
  }
};

TEST_CASE("Bad indices and bad offsets leave table, state and gradients of weights as they are") {
  untouched kit(generator(51));
  auto& input = kit.input;
  const auto weights = std::vector<float>(input.ids.size(), 2.0F);
  ferry::tensor<float, ferry::device_space> weight_grads("weight_grads", input.ids.size());
  put(weight_grads, std::vector<float>(input.ids.size(), 77.0F));
  auto bad = input.ids;
  const std::size_t position = bad.size() / 2;
  bad[position] = 4000;
  bad.back() = -7;
  const auto text = "2 of " + std::to_string(bad.size()) + " indices are outside of 'table'";
  kit.refuses<ferry::out_of_range>(text, bad, input.offsets, kit.grads);
  kit.refuses<ferry::out_of_range>("index 4000 at position " + std::to_string(position), bad, input.offsets,
                                   kit.grads, ferry::pooling::max{});
  kit.refuses<ferry::out_of_range>(text, bad, input.offsets, kit.grads, weights, weight_grads);
  const auto plan = ferry::make_plan(exec_space{}, bad, input.rows);
  kit.refuses<ferry::out_of_range>(text, plan, input.offsets, kit.grads);

  const auto changed_offsets = [&](std::size_t place, std::int64_t value) {
    auto result = as_offsets<std::int64_t>(input.offsets);
    result[place] = value;
    return result;
  };
  const auto total = static_cast<std::int64_t>(input.ids.size());
  kit.refuses<ferry::out_of_range>("offsets[4] = -2", input.ids, changed_offsets(4, -2), kit.grads);
  auto large = as_offsets<std::uint64_t>(input.offsets);
  large[4] = ~std::uint64_t{0} - 1;
  kit.refuses<ferry::out_of_range>("offsets[4] = 18446744073709551614", input.ids, large, kit.grads);
  kit.refuses<ferry::out_of_range>("offsets[5] = ", input.ids, changed_offsets(5, total + 9), kit.grads,
                                   ferry::bounds::skip{});
  // After an empty first bag it is the next offset that decreases.
  kit.refuses<ferry::out_of_range>(input.offsets[1] == 0 ? "offsets[1] = 0" : "offsets[0] = 1", input.ids,
                                   changed_offsets(0, 1), kit.grads);
  kit.refuses<ferry::out_of_range>("offsets[31] = ", input.ids, changed_offsets(31, total - 1), kit.grads,
                                   weights, weight_grads);
  kit.refuses<ferry::out_of_range>("offsets[31] = ", input.ids, changed_offsets(31, -1), kit.grads,
                                   ferry::pooling::sum{});
  CHECK(take(weight_grads) == std::vector<float>(input.ids.size(), 77.0F));

  // A plan of good indices does not keep the fault of a batch's offsets.
  const auto good = ferry::make_plan(exec_space{}, input.ids, input.rows);
  kit.refuses<ferry::out_of_range>("offsets[4] = -2", good, changed_offsets(4, -2), kit.grads);
  ferry::step_bags(exec_space{}, adam, kit.table, kit.state, good, input.offsets, kit.grads).wait();
  CHECK(kit.state.steps() == 1);
  CHECK_FALSE(same_bits(take(kit.table), input.values));
}

TEST_CASE("Arguments of a step on bags that do not fit are refused") {
  untouched kit(generator(52));
  auto& input = kit.input;
  const auto& grads = kit.grads;
  const ferry::tensor<float, ferry::device_space> narrow("grads", input.bags, input.width - 1),
      none("grads", 0, input.width);
  kit.refuses<ferry::invalid_argument>("rows of 'grads'", input.ids, input.offsets, narrow);
  kit.refuses<ferry::invalid_argument>("offsets were given", input.ids, std::vector<int>{0, 1}, grads);
  kit.refuses<ferry::invalid_argument>("has no bags", input.ids, std::vector<int>{0}, none);
  kit.refuses<ferry::invalid_argument>("weights for", input.ids, input.offsets, grads, std::vector<float>(2));
  kit.refuses<ferry::invalid_argument>("the positions of the maxima", input.ids, input.offsets, grads,
                                       std::vector<int>(2), ferry::pooling::max{});
  ferry::tensor<float, ferry::device_space> few("weight_grads", 1);
  kit.refuses<ferry::invalid_argument>("1 gradients of weights for", input.ids, input.offsets, grads,
                                       std::vector<float>(input.ids.size()), few);
}

TEST_CASE("nonfinite policies look at the gradients of bags") {
  untouched kit(generator(53));
  auto& input = kit.input;
  auto infinite = input.grads;
  infinite[17] = std::numeric_limits<float>::infinity();
  const auto grads = make<ferry::device_space>("grads", input.bags, input.width, infinite);
  kit.refuses<ferry::invalid_argument>("inf in column 5 at position 1", input.ids, input.offsets, grads,
                                       ferry::pooling::sum{}, ferry::nonfinite::reject{});
  // The mean divides a copy of the gradients, in which those of empty bags are 0.
  const auto shape = " [" + std::to_string(input.bags) + " x " + std::to_string(input.width) + "] in ";
  const std::vector<float> all_infinite(infinite.size(), infinite[17]);
  kit.refuses<ferry::invalid_argument>(
      "'wild'" + shape + "device_space for rows", input.ids, input.offsets,
      make<ferry::device_space>("wild", input.bags, input.width, all_infinite), ferry::nonfinite::reject{});
  kit.refuses<ferry::invalid_argument>(
      "'near'" + shape + "mapped_space for rows", input.ids, input.offsets,
      make<ferry::mapped_space>("near", input.bags, input.width, all_infinite), ferry::nonfinite::reject{});
  ferry::step_bags(exec_space{}, adam, kit.table, kit.state, input.ids, input.offsets, grads,
                   ferry::pooling::sum{}, ferry::nonfinite::skip{})
      .wait();
  CHECK(same_bits(take(kit.table), input.values));
}

TEST_CASE("8-bit rows step on bags as on positions") {
  auto random = generator(54);
  const exec_space exec;
  const bag_batch<float> input(random, 40, 20, 31);
  const auto numbers = make<ferry::device_space>("numbers", input.rows, input.width, input.values);
  ferry::rowwise_int8_tensor<ferry::device_space> table("codes", input.rows, input.width),
      second("codes", input.rows, input.width);
  ferry::quantize(exec, numbers, table).wait();
  ferry::quantize(exec, numbers, second).wait();
  auto state = ferry::optim::make_state(adam, table);
  auto other_state = ferry::optim::make_state(adam, second);
  const auto grads = make<ferry::device_space>("grads", input.bags, input.width, input.grads);
  const auto rows = make<ferry::device_space>(
      "grads", input.ids.size(), input.width,
      expanded<float>(input.grads, input.width, input.ids, input.offsets, "pooling::mean"));
  for (int s = 0; s < 3; ++s) {
    ferry::step_bags(exec, adam, table, state, input.ids, input.offsets, grads).wait();
    ferry::step(exec, adam, second, other_state, input.ids, rows).wait();
  }
  CHECK(same_bits(take(table.records()), take(second.records())));
  CHECK_FALSE(same_bits(take(numbers), [&] {
    ferry::tensor<float, ferry::device_space> after("after", input.rows, input.width);
    ferry::dequantize(exec, table, after).wait();
    return take(after);
  }()));
}

}  // namespace ferry_test::step_bags_faults_test
