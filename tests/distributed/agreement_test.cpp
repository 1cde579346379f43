// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "support/folder.hpp"

#include <ferry/bags.hpp>
#include <ferry/io.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Arguments that all ranks must pass alike, and those that may differ.
namespace ferry_test::agreement_test {

using Catch::Matchers::ContainsSubstring;
using ferry::step_count::catch_up;

namespace {

struct constant_one {
  KOKKOS_FUNCTION float operator()(std::int64_t, std::int64_t) const { return 1.0f; }
};
struct constant_two {
  KOKKOS_FUNCTION float operator()(std::int64_t, std::int64_t) const { return 2.0f; }
};

constexpr std::size_t rows = 10;
const std::vector<std::int64_t> batch{0, 3, 3, 9};

ferry::tensor<float, host> gradients() {
  ferry::tensor<float, host> result("gradients", batch.size(), width);
  for (std::size_t i = 0; i < result.size(); ++i) result.data()[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  return result;
}

/// The message that each rank gets from `act`, which must end in a protocol_error on all of them.
std::vector<std::string> refused(const ferry::communicator& comm, const std::function<void(int)>& act) {
  std::vector<std::string> messages(static_cast<std::size_t>(comm.size()));
  comm.run([&](int rank) {
    messages[static_cast<std::size_t>(rank)] = said<ferry::protocol_error>([&] { act(rank); });
  });
  return messages;
}

/// A rule with options that no list of names knows: a base and an array, which nothing can take apart.
struct derived_sgd : ferry::optim::sgd {
  double listed[2] = {1, 2};
};
struct array_options {
  double lr = 0.1;
  float listed[3] = {};
};
struct plain_options {
  double lr = 0.1;
  std::array<double, 2> betas{};
  bool flag = false;
};
/// A rule that ferry knows no names for.
struct unknown_rule {
  static constexpr std::string_view name = "unknown";
  double lr = 0.5;
  bool flag = true;
};
struct single_array {
  double listed[2] = {};
};
static_assert(!ferry::detail::has_visible_options<derived_sgd>());
static_assert(!ferry::detail::has_visible_options<array_options>());
static_assert(!ferry::detail::has_visible_options<single_array>());
static_assert(ferry::detail::has_visible_options<plain_options>());
static_assert(ferry::detail::has_visible_options<ferry::optim::adam>());
static_assert(ferry::detail::has_visible_options<ferry::optim::clip_norm>());

}  // namespace

TEST_CASE("ranks that pass different states of one count are told so", "[distributed]") {
  const watchdog guard("different states");
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const std::vector<std::int64_t> offsets{0, 1, 4};
  const auto grads = gradients();
  const ferry::tensor<float, host> pooled("pooled", 2, width);
  const auto check = [&](const char* verb, auto policy, const auto& act) {
    INFO(verb);
    const auto comm = group_of(3);
    ferry::sharded_table<float, host> table("w", comm, rows, width);
    ferry::init::constant(exec, table, 1);
    auto first_state = ferry::optim::make_state(rule, table), two = ferry::optim::make_state(rule, table);
    for (auto* state : {&first_state, &two})
      ferry::step(exec, rule, table, *state, batch, grads, policy).wait();
    ferry::tensor<float, host> before("before", rows, width), after("after", rows, width);
    ferry::copy(exec, table, before).wait();
    for (const auto& text : refused(comm, [&](int rank) { act(table, rank == 1 ? two : first_state, rank); }))
      CHECK_THAT(text, ContainsSubstring(verb) && ContainsSubstring("they differ in the state"));
    CHECK(first_state.steps() == 1);
    CHECK(two.steps() == 1);
    ferry::copy(exec, table, after).wait();
    CHECK(same_bits(before.data(), after.data(), before.size()));
  };
  const auto by_step = ferry::step_count::global{};
  check("step", by_step,
        [&](auto& table, auto& state, int) { ferry::step(exec, rule, table, state, batch, grads).wait(); });
  check("step_bags", by_step, [&](auto& table, auto& state, int) {
    ferry::step_bags(exec, rule, table, state, batch, offsets, pooled, ferry::pooling::sum{}).wait();
  });
  check("catch_up", catch_up{},
        [&](auto& table, auto& state, int) { ferry::catch_up(exec, rule, table, state).wait(); });
  check("gather", catch_up{}, [&](auto& table, auto& state, int) {
    ferry::tensor<float, host> out("out", batch.size(), width);
    ferry::gather(exec, rule, table, state, batch, out).wait();
  });
}

TEST_CASE("ranks that pass different options of a rule or of its transforms are told so", "[distributed]") {
  const watchdog guard("different options");
  const exec_space exec;
  const auto grads = gradients();
  const auto check = [&](const std::string& words, const auto& rule, const auto& second_rule, auto policy) {
    const auto comm = group_of(2);
    ferry::sharded_table<float, host> table("w", comm, rows, width);
    ferry::init::zeros(exec, table);
    auto state = ferry::optim::make_state(rule, table);
    comm.run([&] { ferry::step(exec, rule, table, state, batch, grads, policy).wait(); });
    for (const auto& text : refused(comm, [&](int rank) {
           ferry::step(exec, rank == 0 ? rule : second_rule, table, state, batch, grads, policy).wait();
         }))
      CHECK_THAT(text, ContainsSubstring("they differ in the options of the rule or its transforms (" +
                                         words + " on rank 1)"));
    CHECK(state.steps() == 1);
  };
  using namespace ferry::optim;
  const auto global = ferry::step_count::global{};
  check("lr is 0.1 on rank 0 and 0.2", adam{.lr = 0.1}, adam{.lr = 0.2}, global);
  check("lr is 0.1 on rank 0 and 0.2", adam{.lr = 0.1}, adam{.lr = 0.2}, catch_up{});
  check("betas[1] is 0.999 on rank 0 and 0.99", adam{.betas = {0.9, 0.999}}, adam{.betas = {0.9, 0.99}},
        global);
  check("maximize is 0 on rank 0 and 1", sgd{.maximize = false}, sgd{.maximize = true}, global);
  check("clip_norm.max_norm is 1 on rank 0 and 2", chain{sgd{.lr = 0.1}, clip_norm{1.0}},
        chain{sgd{.lr = 0.1}, clip_norm{2.0}}, global);
  check("lr is 0.1 on rank 0 and 0.3", chain{sgd{.lr = 0.1}, clip_value{1.0}},
        chain{sgd{.lr = 0.3}, clip_value{1.0}}, global);

  // A schedule sets the same rate on all ranks, and each has transforms over an array of its own.
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> table("w", comm, rows, width);
  ferry::init::zeros(exec, table);
  std::vector<ferry::tensor<float, host>> rates;
  for (int r = 0; r < 2; ++r) ferry::init::constant(exec, rates.emplace_back("rates", rows), 2);
  auto state = make_state(sgd{}, table);
  comm.run([&](int rank) {
    chain rank_rule{sgd{.lr = 0.5}, row_rates(rates[static_cast<std::size_t>(rank)])};
    for (int i = 0; i < 5; ++i) {
      rank_rule.rule.lr *= 0.9;
      ferry::step(exec, rank_rule, table, state, batch, grads).wait();
    }
  });
  CHECK(state.steps() == 5);
  // Zero has two signs.
  comm.run([&](int rank) {
    const sgd rule{.lr = rank == 0 ? 0.0 : -0.0};
    ferry::step(exec, rule, table, state, batch, grads).wait();
  });
  CHECK(state.steps() == 6);

  // Fields and their first values follow from the options, too.
  const auto group = group_of(2);
  ferry::sharded_table<float, host> second("v", group, rows, width);
  for (const auto& text : refused(group, [&](int rank) {
         (void)make_state(adagrad{.initial_accumulator_value = rank == 0 ? 0.0 : 0.5}, second);
       }))
    CHECK_THAT(text, ContainsSubstring("make_state") && ContainsSubstring("options"));
}

TEST_CASE("notes keep names and values of options", "[distributed]") {
  ferry::detail::call_note note("step");
  add_options(note, unknown_rule{});
  add_options(note, ferry::optim::chain{ferry::optim::adam{}, ferry::optim::clip_value{3.0}});
  using option = std::pair<std::string, double>;
  std::vector<option> options;
  for (std::size_t i = 0; i < note.option_count; ++i)
    options.emplace_back(note.options[i].name.data(), note.options[i].value);
  CHECK(options == std::vector<option>{{"", 0.5},
                                       {"", 1},
                                       {"lr", 1e-3},
                                       {"betas[0]", 0.9},
                                       {"betas[1]", 0.999},
                                       {"eps", 1e-8},
                                       {"weight_decay", 0},
                                       {"amsgrad", 0},
                                       {"maximize", 0},
                                       {"clip_value.limit", 3}});

  // A name has no room for all letters, and a note none for all options.
  ferry::detail::call_note full;
  for (int i = 0; i < 20; ++i) full.show_option(i, {std::string(30, 'a'), ".", std::string(30, 'b')});
  CHECK(full.option_count == ferry::detail::call_note::most_options);
  CHECK(std::string(full.options.back().name.data()) == std::string(30, 'a') + "." + std::string(8, 'b'));
}

TEST_CASE("ranks that draw other initial values are told so", "[distributed]") {
  const watchdog guard("different initial values");
  const exec_space exec;
  const auto check = [&](const char* differing, const auto& act) {
    const auto comm = group_of(2);
    ferry::sharded_table<float, host> table("w", comm, rows, width);
    for (const auto& text : refused(comm, [&](int rank) { act(table, rank); }))
      CHECK_THAT(text, ContainsSubstring("they differ in ") && ContainsSubstring(differing));
  };
  const char* const values = "the values of arguments";
  check(values, [&](auto& table, int rank) {
    ferry::init::uniform(exec, table, -1, 1, static_cast<std::uint64_t>(rank));
  });
  check(values, [&](auto& table, int rank) { ferry::init::uniform(exec, table, -1, 1 + rank, 1); });
  check(values, [&](auto& table, int rank) { ferry::init::normal(exec, table, rank, 1, 1); });
  check(values, [&](auto& table, int rank) { ferry::init::constant(exec, table, rank); });
  check("element types", [&](auto& table, int rank) {
    if (rank == 0)
      ferry::init::custom(exec, table, constant_one{});
    else
      ferry::init::custom(exec, table, constant_two{});
  });
  // Numbers of different types that become the same element agree.
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> table("w", comm, rows, width);
  comm.run([&](int rank) {
    if (rank == 0)
      ferry::init::constant(exec, table, 3);
    else
      ferry::init::constant(exec, table, 3.0L);
  });
}

TEST_CASE("catch_up ends the history of shards without rows, and of tables without columns",
          "[distributed]") {
  const watchdog guard("empty shards");
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const auto check = [&](auto spread, std::size_t count, std::size_t columns) {
    CAPTURE(spread.name, count, columns);
    const auto comm = group_of(3);
    ferry::sharded_table<float, host, decltype(spread)> table("w", comm, count, columns, spread);
    ferry::init::zeros(exec, table);
    auto state = ferry::optim::make_state(rule, table);
    // This training by one table.
    ferry::tensor<float, host> whole("w", count, columns);
    ferry::init::zeros(exec, whole);
    auto whole_state = ferry::optim::make_state(rule, whole);
    const std::vector<int> named(count == 0 ? 0 : 2, 0);
    ferry::tensor<float, host> grads("g", named.size(), columns);
    if (grads.size() != 0) ferry::init::constant(exec, grads, 1);
    std::vector<int> all_named;
    for (int r = 0; r < 3; ++r) all_named.insert(all_named.end(), named.begin(), named.end());
    ferry::tensor<float, host> all_grads("g", all_named.size(), columns);
    if (all_grads.size() != 0) ferry::init::constant(exec, all_grads, 1);
    const temporary_folder folder;
    std::vector<std::size_t> bytes;
    for (int turn = 0; turn < 3; ++turn) {
      for (int i = 0; i < 40; ++i)
        ferry::step(exec, rule, whole, whole_state, all_named, all_grads, catch_up{}).wait();
      ferry::catch_up(exec, rule, whole, whole_state).wait();
      comm.run([&] {
        for (int i = 0; i < 40; ++i) ferry::step(exec, rule, table, state, named, grads, catch_up{}).wait();
        ferry::catch_up(exec, rule, table, state).wait();
        ferry::io::checkpoint run(folder.path() + "/run.ckpt");
        run.add("w", table);
        run.add("rule", rule, state);
        run.save();
      });
      REQUIRE(same_table(exec, table, whole));
      for (int r = 0; r < 3; ++r) {
        CHECK(state.shard(r).clock()->updates.recorded().first == 40 * (turn + 1) + 1);
        CHECK(state.shard(r).clock()->updates.recorded().spans.empty());
      }
      CHECK(whole_state.clock()->updates.recorded().spans.empty());
    }
    // The checkpoint goes on with the same bits in another number of ranks.
    const auto fewer = group_of(2);
    ferry::sharded_table<float, host> read("w", fewer, count, columns);
    auto read_state = ferry::optim::make_state(rule, read);
    fewer.run([&] {
      ferry::io::checkpoint run(folder.path() + "/run.ckpt");
      run.add("w", read);
      run.add("rule", rule, read_state);
      run.load();
    });
    CHECK(read_state.steps() == 120);
    CHECK(same_table(exec, read, whole));
  };
  check(ferry::sharding::table_wise{.rank = 1}, rows, width);
  check(ferry::sharding::cyclic{}, 2, width);
  check(ferry::sharding::cyclic{}, 0, width);
  check(ferry::sharding::block{}, 2, width);
  check(ferry::sharding::cyclic{}, rows, 0);
  check(ferry::sharding::replicated{}, 2, 0);
}

TEST_CASE("a save by ranks that differ says in which entry and in what", "[distributed]") {
  const watchdog guard("different saves");
  const exec_space exec;
  const auto check = [&](const std::vector<std::string>& parts, const auto& add) {
    const auto comm = group_of(3);
    ferry::sharded_table<float, host> table("w", comm, rows, width), twin("w", comm, rows, width);
    for (auto* array : {&table, &twin}) ferry::init::zeros(exec, *array);
    const ferry::optim::adam rule{.lr = 0.1}, faster{.lr = 0.2};
    auto state = ferry::optim::make_state(rule, table), second_state = ferry::optim::make_state(rule, table);
    const temporary_folder folder;
    const auto messages = refused(comm, [&](int rank) {
      ferry::io::checkpoint run(folder.path() + "/run.ckpt");
      add(run, rank == 2, table, twin, rule, faster, state, second_state);
      run.save();
    });
    for (const auto& text : messages) {
      CHECK(text == messages.front());
      for (const auto& part : parts) CHECK_THAT(text, ContainsSubstring(part));
    }
    CHECK(entries_of(folder.path() + "/run.ckpt") == 0);
    CHECK_THROWS_AS(comm.run([&] { comm.barrier(); }), ferry::protocol_error);
  };
  check({"rank 0 has entry 'w': the object number", "rank 2 has entry 'w': the object number"},
        [](auto& run, bool odd, auto& table, auto& twin, auto&...) { run.add("w", odd ? twin : table); });
  check({"rank 0 has entry 'rule': the object number", "rank 2 has entry 'rule': the object number"},
        [](auto& run, bool odd, auto&, auto&, auto& rule, auto&, auto& state, auto& second_state) {
          run.add("rule", rule, odd ? second_state : state);
        });
  check({"rank 0 has entry 'rule': option.lr 0.1", "rank 2 has entry 'rule': option.lr 0.2"},
        [](auto& run, bool odd, auto&, auto&, auto& rule, auto& faster, auto& state, auto&) {
          run.add("rule", odd ? faster : rule, state);
        });
  check({"rank 0 has entry 'epoch': the array, value", "rank 2 has entry 'epoch': the array, value"},
        [](auto& run, bool odd, auto& table, auto&...) {
          static std::int64_t epochs[] = {2, 3};
          run.add("w", table);
          run.add("epoch", epochs[odd ? 1 : 0]);
        });
  check({"rank 0 has entry 'epoch': the array i32", "rank 2 has entry 'epoch': the array i64"},
        [](auto& run, bool odd, auto& table, auto&...) {
          static std::int64_t wide = 1;
          static std::int32_t narrow = 1;
          run.add("w", table);
          if (odd)
            run.add("epoch", wide);
          else
            run.add("epoch", narrow);
        });

  check({}, [](auto& run, bool odd, auto& table, auto&...) { run.add(odd ? "x" : "w", table); });
  check({}, [](auto& run, bool odd, auto& table, auto&...) {
    static float more = 0;
    run.add("w", table);
    if (odd) run.add("more", more);
  });
  check({}, [](auto& run, bool odd, auto&, auto&, auto& rule, auto&, auto& state, auto&) {
    if (odd) state.set_seed(5);
    run.add("rule", rule, state);
  });

  // Steps of one rank alone, and a history that goes on after those of the others has ended.
  const ferry::optim::adam rule{.lr = 0.1};
  for (const bool history : {false, true}) {
    const auto comm = group_of(2);
    ferry::sharded_table<float, host> table("w", comm, rows, width);
    ferry::init::zeros(exec, table);
    auto state = ferry::optim::make_state(rule, table);
    const auto grads = gradients();
    ferry::step(exec, rule, table, state, batch, grads, catch_up{}).wait();
    if (history)
      ferry::catch_up(exec, rule, table.shard(1), state.shard(1)).wait();
    else
      state.shard(1).set_steps(5);
    const temporary_folder folder;
    for (const auto& text : refused(comm, [&](int) {
           ferry::io::checkpoint run(folder.path() + "/run.ckpt");
           run.add("rule", rule, state);
           run.save();
         }))
      CHECK_THAT(text,
                 ContainsSubstring(history ? "rank 0 has entry 'rule': history_first 1, rank 1 has entry "
                                             "'rule': history_first 2"
                                           : "rank 0 has entry 'rule': steps 1, rank 1 has entry "
                                             "'rule': steps 5"));
  }
}

TEST_CASE("a load by ranks that differ says in which entry and in what", "[distributed]") {
  const watchdog guard("different loads");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> table("w", comm, rows, width), twin("w", comm, rows, width);
  ferry::init::constant(exec, table, 1);
  ferry::init::constant(exec, twin, 2);
  const temporary_folder folder;
  const std::string path = folder.path() + "/run.ckpt";
  comm.run([&] {
    ferry::io::checkpoint run(path);
    run.add("w", table);
    run.save();
  });
  ferry::init::constant(exec, table, 3);
  for (const auto& text : refused(comm, [&](int rank) {
         ferry::io::checkpoint run(path);
         run.add("w", rank == 0 ? table : twin);
         run.load();
       }))
    CHECK_THAT(text, ContainsSubstring("rank 1 has entry 'w': the object number"));
  CHECK(table.shard(0)(0, 0) == 3.0f);
  CHECK(twin.shard(1)(0, 0) == 2.0f);
}

}  // namespace ferry_test::agreement_test
