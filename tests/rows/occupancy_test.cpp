// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::occupancy_test {

// Verbs on a few blocks give the bits of the same verbs on the whole device.

constexpr std::size_t rows = 700, width = 36, count = 2100;

template <class Space, class Occupancy, class... Policies>
void check(Occupancy occupancy, Policies... policies) {
  CAPTURE(Space::name, Occupancy::name);
  const exec_space exec;
  auto random = generator(11);
  std::vector<std::int32_t> ids(count);
  for (auto& id : ids) id = static_cast<std::int32_t>(random() % rows);
  const auto numbers = [&](std::size_t size) {
    std::vector<float> values(size);
    for (auto& value : values) value = static_cast<float>(random() % 1000) / 64 - 7;
    return values;
  };
  const auto initial = numbers(rows * width);
  const auto batch = make<ferry::device_space>("batch", count, width, numbers(count * width));
  const auto rule = ferry::optim::adam{.lr = 0.01};
  std::vector<float> gathered[2], replaced[2], added[2], stepped[2];
  for (int turn = 0; turn < 2; ++turn) {
    const auto call = [&](const auto& verb) {
      if (turn == 0)
        verb(policies...).wait();
      else
        verb(policies..., occupancy).wait();
    };
    auto table = make<Space>("table", rows, width, initial);
    auto out = make<ferry::device_space>("out", count, width, std::vector<float>(count * width, -99.0F));
    call([&](auto... options) { return ferry::gather(exec, table, ids, out, options...); });
    gathered[turn] = take(out);
    call([&](auto... options) { return ferry::scatter(exec, table, ids, batch, options...); });
    replaced[turn] = take(table);
    call([&](auto... options) { return ferry::scatter_add(exec, table, ids, batch, options...); });
    added[turn] = take(table);
    auto state = ferry::optim::make_state(rule, table);
    call([&](auto... options) { return ferry::step(exec, rule, table, state, ids, batch, options...); });
    const auto plan = ferry::make_plan(exec, ids, rows);
    call([&](auto... options) { return ferry::step(exec, rule, table, state, plan, batch, options...); });
    stepped[turn] = take(table);
  }
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t c = 0; c < width; ++c)
      if (gathered[1][p * width + c] != initial[static_cast<std::size_t>(ids[p]) * width + c])
        FAIL("position " << p << ", column " << c);
  CHECK(same_bits(gathered[0], gathered[1]));
  CHECK(same_bits(replaced[0], replaced[1]));
  CHECK(same_bits(added[0], added[1]));
  CHECK(same_bits(stepped[0], stepped[1]));
}

TEMPLATE_TEST_CASE("verbs on a few blocks give the bits of the whole device", "[occupancy]",
                   ferry::device_space, ferry::mapped_space, ferry::pinned_space) {
  check<TestType>(ferry::occupancy::blocks<1>());
  check<TestType>(ferry::occupancy::blocks<8>(), ferry::path::direct());
  check<TestType>(ferry::occupancy::background<50>(), ferry::path::ordered());
}

TEST_CASE("a bad index is reported from a few blocks, and good positions are gathered", "[occupancy]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 5, 3, std::vector<float>(15, 2.0F));
  auto out = make<ferry::device_space>("out", 3, 3, std::vector<float>(9, -1.0F));
  const std::vector<std::int32_t> ids = {0, 9, 4};
  CHECK_THROWS_AS(ferry::gather(exec, table, ids, out, ferry::occupancy::blocks<2>()).wait(),
                  ferry::out_of_range);
  CHECK(take(out) == std::vector<float>{2, 2, 2, -1, -1, -1, 2, 2, 2});
}

}  // namespace ferry_test::occupancy_test
