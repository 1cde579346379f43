// SPDX-License-Identifier: Apache-2.0
#include "bags/table_kit.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_tables_faults_test {

constexpr ferry::optim::adam adam{.lr = 0.05};

/// Three tables of two bags each, which must stay as they are.
struct untouched {
  table_batch<float> input;
  std::vector<ferry::tensor<float, ferry::device_space>> tables;
  std::vector<decltype(ferry::optim::make_state(adam, tables.front()))> states;
  ferry::tensor<float, ferry::device_space> grads;
  std::vector<std::int64_t> good{999, 5, 3, 9, 499, 7}, offsets{0, 1, 2, 3, 4, 5, 6};

  explicit untouched(std::mt19937_64&& random) : input(random, {4, 3, 5}, 2, {1000, 10, 500}) {
    const char* const names[] = {"users", "items", "shops"};
    for (std::size_t t = 0; t < 3; ++t)
      tables.push_back(make<ferry::device_space>(names[t], input.rows[t], input.widths[t], input.values[t]));
    renew_states();
    grads = make<ferry::device_space>("grads", 2, 12, input.grads);
  }
  void renew_states() {
    states.clear();
    for (const auto& table : tables) states.push_back(ferry::optim::make_state(adam, table));
  }
  template <class Error, class... Arguments>
  std::string refused(Arguments&&... arguments) {
    const auto text = said<Error>([&] {
      ferry::step_bags(exec_space{}, adam, ferry::for_each_table(tables), states, arguments...).wait();
    });
    CHECK_THAT(text, ContainsSubstring("ferry::step_bags: "));
    check();
    return text;
  }
  void check() {
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(same_bits(take(tables[t]), input.values[t]));
      CHECK(states[t].steps() == 0);
      for (int f = 0; f < states[t].fields(); ++f)
        CHECK(take(states[t].field(f)) == std::vector<float>(input.values[t].size()));
    }
  }
};

template <class T>
std::vector<T> changed(std::vector<T> list, std::size_t place, std::int64_t value) {
  list[place] = static_cast<T>(value);
  return list;
}

TEST_CASE("A bad index of one table leaves all tables and states as they are") {
  untouched kit(generator(231));
  const char* const names[] = {"'users' [1000 x 4]", "'items' [10 x 3]", "'shops' [500 x 5]"};
  const std::vector<float> weights(6, 1.0F);
  for (std::size_t p = 0; p < 6; ++p) {
    const auto bad = changed(kit.good, p, 12345);
    const auto text = "index 12345 at position " + std::to_string(p) + ", in bag " + std::to_string(p % 2) +
                      " of " + names[p / 2];
    using error = ferry::out_of_range;
    CHECK_THAT(kit.refused<error>(bad, kit.offsets, kit.grads),
               ContainsSubstring("1 of 6 indices") && ContainsSubstring(text));
    CHECK_THAT(kit.refused<error>(bad, 1, kit.grads, ferry::pooling::sum{}), ContainsSubstring(text));
    CHECK_THAT(kit.refused<error>(bad, kit.offsets, kit.grads, weights), ContainsSubstring(text));
    CHECK_THAT(kit.refused<error>(bad, kit.offsets, kit.grads, ferry::step_count::per_row{}),
               ContainsSubstring(text));
    kit.renew_states();
  }
  CHECK_THAT(
      kit.refused<ferry::out_of_range>(changed(changed(kit.good, 3, -7), 4, 500), kit.offsets, kit.grads),
      ContainsSubstring("2 of 6 indices") && ContainsSubstring("index -7 at position 3") &&
          ContainsSubstring("'items'"));
}

TEST_CASE("Gradients that are not finite leave all tables as they are") {
  untouched kit(generator(233));
  auto infinite = kit.input.grads;
  infinite[17] = std::numeric_limits<float>::infinity();
  const auto grads = make<ferry::device_space>("grads", 2, 12, infinite);
  CHECK_THAT(kit.refused<ferry::invalid_argument>(kit.good, kit.offsets, grads, ferry::nonfinite::reject{}),
             ContainsSubstring("'grads' [2 x 12] in device_space") && ContainsSubstring("of 3 tables") &&
                 ContainsSubstring("inf in column 5 at position 1"));
  CHECK_THAT(kit.refused<ferry::invalid_argument>(kit.good, kit.offsets, grads, ferry::pooling::sum{},
                                                  ferry::nonfinite::reject{}),
             ContainsSubstring("inf in column 5 at position 1"));
  ferry::step_bags(exec_space{}, adam, ferry::for_each_table(kit.tables), kit.states, kit.good, kit.offsets,
                   grads, ferry::nonfinite::skip{})
      .wait();
  kit.check();
  for (const auto& state : kit.states) CHECK(state.skipped() == 1);
}

TEST_CASE("Arguments of a step of many tables that do not fit are refused") {
  untouched kit(generator(234));
  using error = ferry::invalid_argument;
  const exec_space exec;
  const ferry::tensor<float, ferry::device_space> narrow("narrow", 2, 11), none("none", 0, 12);
  CHECK_THAT(kit.refused<error>(kit.good, kit.offsets, narrow),
             ContainsSubstring("the rows of 3 tables have 12 elements together, rows of 'narrow' [2 x 11]"));
  CHECK_THAT(kit.refused<error>(kit.good, std::vector<int>{0, 1}, kit.grads),
             ContainsSubstring("2 offsets were given for the 6 bags of 3 tables and 'grads' [2 x 12] in"));
  CHECK_THAT(kit.refused<error>(kit.good, std::vector<int>{0}, none),
             ContainsSubstring("'none' [0 x 12]") && ContainsSubstring("has no bags"));
  CHECK_THAT(kit.refused<error>(kit.good, kit.offsets, kit.grads, std::vector<float>(2)),
             ContainsSubstring("2 weights for 6 indices"));
  CHECK_THAT(kit.refused<error>(kit.good, 2, kit.grads),
             ContainsSubstring("the 6 bags of 2 positions of 3 tables and 'grads' [2 x 12]"));

  const auto said_for = [&](const auto& tables, auto& states, const auto& grads, const auto&... more) {
    const auto text = said<error>(
        [&] { ferry::step_bags(exec, adam, tables, states, kit.good, kit.offsets, grads, more...).wait(); });
    kit.check();
    return text;
  };
  CHECK_THAT(said_for(ferry::for_each_table(kit.tables[0], kit.tables[1]), kit.states, kit.grads),
             ContainsSubstring("have 7 elements together"));
  const ferry::tensor<float, ferry::device_space> seven("grads", 2, 7);
  CHECK_THAT(said_for(ferry::for_each_table(kit.tables[0], kit.tables[1]), kit.states, seven),
             ContainsSubstring("for_each_table has 2 tables, but there are 3 states"));
  std::swap(kit.states[0], kit.states[1]);
  CHECK_THAT(said<error>([&] {
               ferry::step_bags(exec, adam, ferry::for_each_table(kit.tables), kit.states, kit.good,
                                kit.offsets, kit.grads)
                   .wait();
             }),
             ContainsSubstring("'users'"));
  std::swap(kit.states[0], kit.states[1]);
  kit.check();
  std::vector<ferry::tensor<float, ferry::device_space>> no_tables;
  decltype(kit.states) no_states;
  const ferry::tensor<float, ferry::device_space> no_grads("grads", 2, 0);
  CHECK_THAT(said_for(ferry::for_each_table(no_tables), no_states, no_grads),
             ContainsSubstring("for_each_table has no tables"));
  std::array twice{ferry::optim::make_state(adam, kit.tables[1]),
                   ferry::optim::make_state(adam, kit.tables[1]),
                   ferry::optim::make_state(adam, kit.tables[1])};
  const ferry::tensor<float, ferry::device_space> nine("grads", 2, 9);
  CHECK_THAT(said_for(ferry::for_each_table(kit.tables[1], kit.tables[1], kit.tables[1]), twice, nine),
             ContainsSubstring("overlap in memory"));

  // States of second options, and of rows that count.
  const ferry::optim::sgd plain{.lr = 0.1}, heavy{.lr = 0.1, .momentum = 0.9};
  std::vector<decltype(ferry::optim::make_state(plain, kit.tables[0]))> mixed;
  for (std::size_t t = 0; t < 3; ++t)
    mixed.push_back(ferry::optim::make_state(t == 1 ? heavy : plain, kit.tables[t]));
  CHECK_THAT(said<error>([&] {
               ferry::step_bags(exec, plain, ferry::for_each_table(kit.tables), mixed, kit.good, kit.offsets,
                                kit.grads)
                   .wait();
             }),
             ContainsSubstring("the state of 'items' has 1"));
  kit.check();
  for (const auto& state : mixed) CHECK(state.steps() == 0);
  kit.states[2].clock()->row_policy = ferry::step_count::per_row::name;
  CHECK_THAT(said_for(ferry::for_each_table(kit.tables), kit.states, kit.grads),
             ContainsSubstring("'shops'") && ContainsSubstring("step_count::per_row"));
}

TEST_CASE("Gradients that overlap a table are refused") {
  auto random = generator(237);
  const exec_space exec;
  const ferry::optim::sgd plain{.lr = 1.0};
  // Rows of the array have those of two tables, and room for gradients.
  using space = ferry::pinned_space;
  using rows = Kokkos::View<float**, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<space>>;
  const rows array("array", 4, 24), apart("apart", 4, 4);
  const auto before = uneven_values<float>(random, 96);
  std::copy_n(before.begin(), 96, array.data());
  const auto columns = [&](std::size_t first, std::size_t last) {
    return Kokkos::subview(array, Kokkos::ALL, std::pair(first, last));
  };
  auto left = columns(0, 4), right = columns(4, 12);
  std::array states{ferry::optim::make_state<space>(plain, left),
                    ferry::optim::make_state<space>(plain, right)};
  std::array mixed{ferry::optim::make_state<space>(plain, apart),
                   ferry::optim::make_state<space>(plain, right)};
  const std::vector<int> ids{1, 2, 3, 0, 1, 2, 3, 0};
  const auto refuse = [&](const auto& tables, auto& range, const auto& grads) {
    const auto text = said<ferry::invalid_argument>(
        [&] { ferry::step_bags(exec, plain, tables, range, ids, 1, grads, ferry::pooling::sum{}).wait(); });
    CHECK_THAT(text, ContainsSubstring("ferry::step_bags: 'array' [4 x 12]") &&
                         ContainsSubstring("overlap in memory"));
    CHECK(std::equal(before.begin(), before.end(), array.data()));
    CHECK(std::count(apart.data(), apart.data() + 16, 0.0F) == 16);
    for (const auto& state : range) CHECK(state.steps() == 0);
  };
  for (const std::size_t first : {0u, 3u, 8u, 11u})
    refuse(ferry::for_each_table(left, right), states, columns(first, first + 12));
  refuse(ferry::for_each_table(apart, right), mixed, columns(0, 12));
  ferry::step_bags(exec, plain, ferry::for_each_table(left, right), states, ids, 1, columns(12, 24),
                   ferry::pooling::sum{})
      .wait();
  std::size_t wrong = 0;
  for (std::size_t b = 0; b < 4; ++b)
    for (std::size_t c = 0; c < 12; ++c) {
      const auto row = static_cast<std::size_t>(ids[b]);
      if (array(row, c) != before[24 * row + c] - before[24 * b + 12 + c]) ++wrong;
    }
  CHECK(wrong == 0);
}

TEST_CASE("A ticket of a step of many tables may outlive tables and states") {
  ferry::ticket late;
  const exec_space exec;
  {
    untouched kit(generator(236));
    late = ferry::step_bags(exec, adam, ferry::for_each_table(kit.tables), kit.states,
                            changed(kit.good, 2, 10), kit.offsets, kit.grads);
    exec.fence();
  }
  CHECK_THAT(said<ferry::out_of_range>([&] { late.wait(); }), ContainsSubstring("bag 0 of 'items' [10 x 3]"));
}

}  // namespace ferry_test::step_tables_faults_test
