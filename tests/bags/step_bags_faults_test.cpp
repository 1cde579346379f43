// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>
#include <utility>

namespace ferry_test::step_bags_faults_test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr ferry::optim::adam adam{.lr = 0.05};

/// A table that must stay as it is.
struct untouched {
  bag_batch<float> given;
  ferry::tensor<float, ferry::device_space> table, grads;
  decltype(ferry::optim::make_state(adam, std::declval<ferry::tensor<float, ferry::device_space>&>())) state;

  explicit untouched(std::mt19937_64&& random) : given(random, 40, 12, 31) {
    given.offsets.back() += 3;
    for (int i = 0; given.which.size() < given.offsets.back(); ++i) given.which.push_back(i);
    table = make<ferry::device_space>("table", given.rows, given.width, given.values);
    grads = make<ferry::device_space>("grads", given.bags, given.width, given.grads);
    state = ferry::optim::make_state(adam, table);
  }
  template <class Error, class... Arguments>
  void refuses(const std::string& text, Arguments&&... arguments) {
    CHECK_THROWS_MATCHES(ferry::step_bags(exec_space{}, adam, table, state, arguments...).wait(), Error,
                         MessageMatches(ContainsSubstring("ferry::step_bags: ") && ContainsSubstring(text)));
    CHECK(same_bits(take(table), given.values));
    CHECK(state.steps() == 0);
  }
};

}  // namespace

TEST_CASE("Bad indices and bad offsets leave table, state and gradients of weights as they are") {
  untouched one(generator(51));
  auto& given = one.given;
  const auto weights = std::vector<float>(given.which.size(), 2.0F);
  ferry::tensor<float, ferry::device_space> weight_grads("weight_grads", given.which.size());
  put(weight_grads, std::vector<float>(given.which.size(), 77.0F));
  auto bad = given.which;
  const std::size_t at = bad.size() / 2;
  bad[at] = 4000;
  bad.back() = -7;
  const auto text = "2 of " + std::to_string(bad.size()) + " indices are outside of 'table'";
  one.refuses<ferry::out_of_range>(text, bad, given.offsets, one.grads);
  one.refuses<ferry::out_of_range>("index 4000 at position " + std::to_string(at), bad, given.offsets,
                                   one.grads, ferry::pooling::max{});
  one.refuses<ferry::out_of_range>(text, bad, given.offsets, one.grads, weights, weight_grads);
  const auto plan = ferry::make_plan(exec_space{}, bad, given.rows);
  one.refuses<ferry::out_of_range>(text, plan, given.offsets, one.grads);

  const auto with = [&](std::size_t place, std::int64_t value) {
    auto made = as_offsets<std::int64_t>(given.offsets);
    made[place] = value;
    return made;
  };
  const auto all = static_cast<std::int64_t>(given.which.size());
  one.refuses<ferry::out_of_range>("offset -2 at place 4", given.which, with(4, -2), one.grads);
  auto large = as_offsets<std::uint64_t>(given.offsets);
  large[4] = ~std::uint64_t{0} - 1;
  one.refuses<ferry::out_of_range>("offset 18446744073709551614 at place 4", given.which, large, one.grads);
  one.refuses<ferry::out_of_range>("at place 5", given.which, with(5, all + 9), one.grads,
                                   ferry::bounds::skip{});
  // After an empty first bag it is the next offset that decreases.
  one.refuses<ferry::out_of_range>(given.offsets[1] == 0 ? "offset 0 at place 1" : "offset 1 at place 0",
                                   given.which, with(0, 1), one.grads);
  one.refuses<ferry::out_of_range>("at place 31", given.which, with(31, all - 1), one.grads, weights,
                                   weight_grads);
  one.refuses<ferry::out_of_range>("at place 31", given.which, with(31, -1), one.grads,
                                   ferry::pooling::sum{});
  CHECK(take(weight_grads) == std::vector<float>(given.which.size(), 77.0F));

  // A plan of good indices does not keep the fault of a batch's offsets.
  const auto good = ferry::make_plan(exec_space{}, given.which, given.rows);
  one.refuses<ferry::out_of_range>("offset -2 at place 4", good, with(4, -2), one.grads);
  ferry::step_bags(exec_space{}, adam, one.table, one.state, good, given.offsets, one.grads).wait();
  CHECK(one.state.steps() == 1);
  CHECK_FALSE(same_bits(take(one.table), given.values));
}

TEST_CASE("Arguments of a step on bags that do not fit are refused") {
  untouched one(generator(52));
  auto& given = one.given;
  const auto& grads = one.grads;
  const ferry::tensor<float, ferry::device_space> narrow("grads", given.bags, given.width - 1),
      none("grads", 0, given.width);
  one.refuses<ferry::invalid_argument>("rows of 'grads'", given.which, given.offsets, narrow);
  one.refuses<ferry::invalid_argument>("offsets were given", given.which, std::vector<int>{0, 1}, grads);
  one.refuses<ferry::invalid_argument>("has no bags", given.which, std::vector<int>{0}, none);
  one.refuses<ferry::invalid_argument>("weights for", given.which, given.offsets, grads,
                                       std::vector<float>(2));
  one.refuses<ferry::invalid_argument>("the positions of the maxima", given.which, given.offsets, grads,
                                       std::vector<int>(2), ferry::pooling::max{});
  ferry::tensor<float, ferry::device_space> few("weight_grads", 1);
  one.refuses<ferry::invalid_argument>("1 weights for", given.which, given.offsets, grads,
                                       std::vector<float>(given.which.size()), few);
}

TEST_CASE("nonfinite policies look at the gradients of bags") {
  untouched one(generator(53));
  auto& given = one.given;
  auto infinite = given.grads;
  infinite[17] = std::numeric_limits<float>::infinity();
  const auto grads = make<ferry::device_space>("grads", given.bags, given.width, infinite);
  one.refuses<ferry::invalid_argument>("inf in column 5 at position 1", given.which, given.offsets, grads,
                                       ferry::pooling::sum{}, ferry::nonfinite::reject{});
  ferry::step_bags(exec_space{}, adam, one.table, one.state, given.which, given.offsets, grads,
                   ferry::pooling::sum{}, ferry::nonfinite::skip{})
      .wait();
  CHECK(same_bits(take(one.table), given.values));
}

TEST_CASE("8-bit rows step on bags as on positions") {
  auto random = generator(54);
  const exec_space exec;
  const bag_batch<float> given(random, 40, 20, 31);
  const auto numbers = make<ferry::device_space>("numbers", given.rows, given.width, given.values);
  ferry::rowwise_int8_tensor<ferry::device_space> table("codes", given.rows, given.width),
      other("codes", given.rows, given.width);
  ferry::quantize(exec, numbers, table).wait();
  ferry::quantize(exec, numbers, other).wait();
  auto state = ferry::optim::make_state(adam, table);
  auto other_state = ferry::optim::make_state(adam, other);
  const auto grads = make<ferry::device_space>("grads", given.bags, given.width, given.grads);
  const auto rows = make<ferry::device_space>(
      "grads", given.which.size(), given.width,
      expanded<float>(given.grads, given.width, given.which, given.offsets, "pooling::mean"));
  for (int s = 0; s < 3; ++s) {
    ferry::step_bags(exec, adam, table, state, given.which, given.offsets, grads).wait();
    ferry::step(exec, adam, other, other_state, given.which, rows).wait();
  }
  CHECK(same_bits(take(table.records()), take(other.records())));
  CHECK_FALSE(same_bits(take(numbers), [&] {
    ferry::tensor<float, ferry::device_space> after("after", given.rows, given.width);
    ferry::dequantize(exec, table, after).wait();
    return take(after);
  }()));
}

}  // namespace ferry_test::step_bags_faults_test
