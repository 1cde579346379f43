// SPDX-License-Identifier: Apache-2.0
#include "distributed/bag_routes.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <new>
#include <span>

/// Arguments of verbs on several sharded tables that are bad, or that differ between ranks: no table changes,
/// and every rank ends the call with an error.
namespace ferry_test::list_faults_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr ferry::optim::sgd rule{.lr = 0.1};

/// Three tables of two bags each for each of three ranks, which must stay as they are.
struct untouched {
  using table_type = ferry::sharded_table<float, host>;

  exec_space exec;
  ferry::communicator comm;
  std::vector<table_type> tables;
  std::vector<ferry::tensor<float, host>> before;
  std::vector<decltype(ferry::optim::make_state(rule, tables.front()))> states;
  std::vector<std::int64_t> good{999, 5, 3, 9, 499, 7}, offsets{0, 1, 2, 3, 4, 5, 6};

  explicit untouched(bool messages) : comm(group_by(3, messages)) {
    const std::size_t rows[] = {1000, 10, 500}, widths[] = {4, 3, 5};
    const char* const names[] = {"users", "items", "shops"};
    for (std::size_t t = 0; t < 3; ++t) {
      tables.emplace_back(names[t], comm, rows[t], widths[t]);
      ferry::init::uniform(exec, tables.back(), -1, 1, t);
      before.emplace_back("before", rows[t], widths[t]);
      ferry::copy(exec, tables.back(), before.back()).wait();
      states.push_back(ferry::optim::make_state(rule, tables.back()));
    }
  }
  static ferry::tensor<float, host> grads(std::size_t bags = 2, std::size_t columns = 12) {
    ferry::tensor<float, host> rows("grads", bags, columns);
    ferry::init::constant(exec_space{}, rows, 1);
    return rows;
  }
  /// The message of each rank, for the arguments after the states that `arguments(rank)` returns as a tuple.
  template <class Error, class OthersError = Error, class Arguments>
  std::array<std::string, 3> refused(int culprit, const Arguments& arguments) {
    std::array<std::string, 3> texts;
    comm.run([&](int rank) {
      const auto act = [&] {
        std::apply(
            [&](const auto&... more) {
              ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, more...).wait();
            },
            arguments(rank));
      };
      texts[static_cast<std::size_t>(rank)] = rank == culprit ? said<Error>(act) : said<OthersError>(act);
    });
    check();
    return texts;
  }
  void check() const {
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(same_table(exec, tables[t], before[t]));
      CHECK(states[t].steps() == 0);
    }
  }
  /// The group serves afterwards.
  void check_group() {
    comm.run([&](int) {
      ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, good, offsets, grads()).wait();
    });
    for (const auto& state : states) CHECK(state.steps() == 1);
  }
};

template <class T>
std::vector<T> changed(std::vector<T> list, std::size_t place, std::int64_t value) {
  list[place] = static_cast<T>(value);
  return list;
}

}  // namespace

TEST_CASE("a bad index of one rank for one table leaves all tables as they are", "[distributed][lists]") {
  const watchdog guard("bad indices of lists");
  const char* const names[] = {"'users' [1000 x 4]", "'items' [10 x 3]", "'shops' [500 x 5]"};
  for (const bool messages : {false, true}) {
    untouched kit(messages);
    for (std::size_t p = 0; p < 6; ++p) {
      const int culprit = static_cast<int>(p % 3);
      const auto texts = kit.refused<ferry::out_of_range>(culprit, [&](int rank) {
        return std::tuple(rank == culprit ? changed(kit.good, p, 12345) : kit.good, kit.offsets, kit.grads());
      });
      for (const auto& text : texts)
        CHECK_THAT(text, ContainsSubstring("ferry::step_bags: 1 of 18 indices are outside of 3 tables; the "
                                           "first is index 12345 at position " +
                                           std::to_string(p) + ", in bag " + std::to_string(p % 2) + " of " +
                                           names[p / 2]) &&
                             ContainsSubstring("of rank " + std::to_string(culprit)));
    }
    kit.check_group();
  }
}

TEST_CASE("bad offsets of one rank name the table, the bag and the fault", "[distributed][lists]") {
  const watchdog guard("bad offsets of lists");
  struct fault {
    std::size_t place;
    std::int64_t value;
    const char* text;
  };
  const fault faults[] = {
      {3, -3, "the first is offsets[3] = -3 of rank 1, where bag 1 of 'items' [10 x 3]"},
      {3, -3, "begins, which is negative"},
      {2, 9, "offsets[2] = 9 of rank 1, where bag 0 of 'items' [10 x 3]"},
      {2, 9, "begins, which exceeds the 6 positions"},
      {5, 2, "offsets[5] = 2 of rank 1, where bag 1 of 'shops'"},
      {5, 2, "begins, which is less than offsets[4] = 4"},
      {0, 1, "begins, which leaves positions without a bag: the first bag of a step begins at position 0"},
      {6, 5, "offsets[6] = 5 of rank 1, where bag 1 of 'shops' [500 x 5]"},
      {6, 5, "ends, which leaves positions without a bag: the last bag of a step ends at position 6"},
  };
  for (const bool messages : {false, true}) {
    untouched kit(messages);
    for (const auto& [place, value, expected] : faults) {
      const auto texts = kit.refused<ferry::out_of_range>(1, [&](int rank) {
        return std::tuple(kit.good, rank == 1 ? changed(kit.offsets, place, value) : kit.offsets, kit.grads(),
                          ferry::pooling::sum{});
      });
      for (const auto& text : texts) CHECK_THAT(text, ContainsSubstring(expected));
    }
    kit.check_group();
  }
}

TEST_CASE("gradients of a rank that are not finite leave all tables as they are", "[distributed][lists]") {
  const watchdog guard("nonfinite gradients of lists");
  for (const bool messages : {false, true}) {
    untouched kit(messages);
    const auto arguments = [&](auto policy) {
      return [&, policy](int rank) {
        auto grads = kit.grads();
        if (rank == 2) grads(1, 5) = std::numeric_limits<float>::infinity();
        return std::tuple(kit.good, kit.offsets, std::move(grads), policy);
      };
    };
    for (const auto& text : kit.refused<ferry::invalid_argument>(2, arguments(ferry::nonfinite::reject{})))
      CHECK_THAT(text, ContainsSubstring("1 of the elements for rows of 3 tables") &&
                           ContainsSubstring("inf in column 5 at position 1 of rank 2"));
    kit.comm.run([&](int rank) {
      std::apply(
          [&](const auto&... more) {
            ferry::step_bags(kit.exec, rule, ferry::for_each_table(kit.tables), kit.states, more...).wait();
          },
          arguments(ferry::nonfinite::skip{})(rank));
    });
    kit.check();
    for (const auto& state : kit.states) CHECK(state.skipped() == 1);
  }
}

TEST_CASE("arguments of a rank that do not fit its list are its own error", "[distributed][lists]") {
  const watchdog guard("arguments of lists");
  untouched kit(false);
  const auto fails = [&](const char* expected, const auto& arguments) {
    const auto texts = kit.refused<ferry::invalid_argument, ferry::peer_error>(1, arguments);
    for (const auto& text : texts) CHECK_THAT(text, ContainsSubstring(expected));
    CHECK_THAT(texts[0], ContainsSubstring("rank 1 failed in step_bags of 3 tables, numbers"));
  };
  fails("the rows of 3 tables have 12 elements together, rows of 'grads' [2 x 11]",
        [&](int rank) { return std::tuple(kit.good, kit.offsets, kit.grads(2, rank == 1 ? 11 : 12)); });
  fails("3 offsets were given for the 6 bags of 3 tables", [&](int rank) {
    return std::tuple(kit.good, rank == 1 ? std::vector<std::int64_t>{0, 1, 6} : kit.offsets, kit.grads());
  });
  fails("2 weights for 6 indices", [&](int rank) {
    return std::tuple(kit.good, kit.offsets, kit.grads(), std::vector<float>(rank == 1 ? 2 : 6));
  });
  // As many tables, but fewer states; and one table twice.
  std::array<std::string, 3> texts;
  auto other_states = states_of(rule, kit.tables);
  other_states.pop_back();
  const auto twice = ferry::for_each_table(kit.tables[0], kit.tables[1], kit.tables[0]);
  const auto act = [&](const auto& tables, auto& states) {
    ferry::step_bags(kit.exec, rule, tables, states, kit.good, kit.offsets, kit.grads()).wait();
  };
  kit.comm.run([&](int rank) {
    texts[static_cast<std::size_t>(rank)] = said<ferry::invalid_argument>([&] { act(twice, kit.states); });
  });
  for (const auto& text : texts)
    CHECK_THAT(text, ContainsSubstring("tables 0 and 2 of for_each_table are one, 'users'") ||
                         ContainsSubstring("have 11 elements"));
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> foreign("foreign", comm, 9, 5);
  const auto mixed = ferry::for_each_table(kit.tables[0], kit.tables[1], foreign);
  kit.comm.run([&](int rank) {
    texts[static_cast<std::size_t>(rank)] = said<ferry::invalid_argument>([&] { act(mixed, kit.states); });
  });
  for (const auto& text : texts) CHECK_THAT(text, ContainsSubstring("belong to different groups"));
  kit.check();
  kit.check_group();
}

TEST_CASE("ranks whose lists differ end with an error that numbers their tables", "[distributed][lists]") {
  const watchdog guard("lists that differ");
  for (const bool steps : {false, true})
    for (const int fault : {0, 1}) {
      if (steps && fault == 1) continue;  // the states would not be those of the tables
      untouched kit(false);
      std::array<std::string, 3> texts;
      kit.comm.run([&](int rank) {
        const bool is_short = rank == 2 && fault == 0;
        auto grads = kit.grads(2, is_short ? 7 : 12);
        const auto ids = std::vector(kit.good.begin(), kit.good.end() - (is_short ? 2 : 0));
        const auto list = rank != 2    ? ferry::for_each_table(kit.tables)
                          : fault == 0 ? ferry::for_each_table(kit.tables[0], kit.tables[1])
                                       : ferry::for_each_table(kit.tables[0], kit.tables[2], kit.tables[1]);
        auto states = std::span(kit.states).first(is_short ? 2 : 3);
        texts[static_cast<std::size_t>(rank)] = said<ferry::protocol_error>([&] {
          if (steps)
            ferry::step_bags(kit.exec, rule, list, states, ids, 1, grads).wait();
          else
            ferry::gather_bags(kit.exec, list, ids, 1, grads).wait();
        });
      });
      const auto number = kit.tables[0].number();
      const std::string first = std::to_string(number), second = std::to_string(number + 2),
                        third = std::to_string(number + 4);  // each table has a state after it
      const std::string whole = "of 3 tables, numbers " + first + " to " + third + " by 2";
      const std::string part = fault == 0 ? "of 2 tables, numbers " + first + ", " + second
                                          : "of 3 tables, numbers " + first + ", " + third + ", " + second;
      for (const auto& text : texts) CHECK_THAT(text, ContainsSubstring(whole) && ContainsSubstring(part));
    }
}

namespace {

/// A sharding of the host whose owner() throws.
struct failing_sharding : private any_sharding {
  static constexpr std::string_view name = "failing_sharding";
  using any_sharding::check, any_sharding::global_rows, any_sharding::local_row, any_sharding::replicates,
      any_sharding::rows_of;
  static std::atomic<bool> fails;
  [[nodiscard]] int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    if (fails) throw std::bad_alloc();
    return any_sharding::owner(row, rows, ranks);
  }
};
std::atomic<bool> failing_sharding::fails = false;

}  // namespace

TEST_CASE("an exception amid a verb on several sharded tables ends it on all ranks", "[distributed][lists]") {
  const watchdog guard("exceptions amid lists");
  const exec_space exec;
  const auto comm = group_of(3);
  for (const bool steps : {true, false}) {
    std::vector<ferry::sharded_table<float, host, failing_sharding>> tables;
    std::vector<ferry::tensor<float, host>> before;
    for (std::size_t t = 0; t < 3; ++t) {
      tables.emplace_back("w", comm, 20, 4);
      ferry::init::uniform(exec, tables.back(), -1, 1, t);
      before.emplace_back("before", 20, 4);
      const auto& table = tables.back();  // no verb has listed its owners
      for (std::int64_t row = 0; row < 20; ++row)
        std::copy_n(table.shard(table.owner(row)).data() + table.local_row(row) * 4, 4,
                    before.back().data() + row * 4);
    }
    auto states = states_of(rule, tables);
    const std::vector<std::int64_t> ids{1, 2, 3, 4, 5, 6};
    failing_sharding::fails = true;  // the first rank would list the owners for all
    comm.run([&](int) {
      ferry::tensor<float, host> grads("grads", 2, 12);
      ferry::init::constant(exec, grads, 1);
      const auto act = [&] {
        if (steps)
          ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, ids, 1, grads).wait();
        else
          ferry::gather_bags(exec, ferry::for_each_table(tables), ids, 1, grads).wait();
      };
      expect(!said<std::bad_alloc>(act).empty(), "it throws");
    });
    failing_sharding::fails = false;
    for (std::size_t t = 0; t < 3; ++t) CHECK(same_table(exec, tables[t], before[t]));
    comm.run([&](int) {
      const ferry::tensor<float, host> grads("grads", 0, 12);
      ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, std::vector<int>{}, 1, grads)
          .wait();
    });
    for (std::size_t t = 0; t < 3; ++t) CHECK(same_table(exec, tables[t], before[t]));
  }
}

TEST_CASE("bad bags of a gather from several sharded tables are the rank's own", "[distributed][lists]") {
  const watchdog guard("bad bags of gathers from lists");
  for (const bool messages : {false, true}) {
    untouched kit(messages);
    kit.comm.run([&](int rank) {
      auto out = kit.grads();
      const auto list = ferry::for_each_table(kit.tables);
      const auto pool = [&](const auto& ids, const auto& offsets) {
        ferry::init::constant(kit.exec, out, -7);
        ferry::gather_bags(kit.exec, list, ids, offsets, out, ferry::pooling::sum{}).wait();
      };
      const auto bad = changed(kit.good, 3, 10);
      if (rank == 1) {
        const auto text = said<ferry::out_of_range>([&] { pool(bad, kit.offsets); });
        expect(has(text,
                   "1 of 6 indices are outside of their tables; the first is index 10 at position 3, in "
                   "bag 1 of 'items' [10 x 3]"),
               text.c_str());
      } else {
        pool(kit.good, kit.offsets);
      }
      for (std::size_t c = 0; c < 12; ++c) {
        expect(out(0, c) != -7, "good bags are pooled");
        expect((out(1, c) == -7) == (rank == 1 && c >= 4 && c < 7), "a bad bag keeps its contents");
      }
      if (rank == 2) {
        const auto text = said<ferry::out_of_range>([&] { pool(kit.good, changed(kit.offsets, 5, 3)); });
        expect(has(text, "offsets[5] = 3, where bag 1 of 'shops' [500 x 5]") &&
                   has(text, "begins, which is less than offsets[4] = 4"),
               text.c_str());
      } else {
        pool(kit.good, kit.offsets);
      }
    });
    kit.check();
  }
}

}  // namespace ferry_test::list_faults_test
