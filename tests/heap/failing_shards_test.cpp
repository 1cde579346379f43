// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "heap/survive.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

/// Verbs that write to several shards, arrays or columns and lack memory: none is written, or all are.
namespace ferry_test::failing_shards_test {

constexpr std::int64_t rows = 60, n = 24;
constexpr int ranks = 3;

/// Shards of 5, 15 and 40 rows.
ferry::sharding::dealt unequal() {
  return {rows, [](std::int64_t row) { return row < 5 ? 0 : row < 20 ? 1 : 2; }};
}

/// Rows all over the table, some twice.
std::vector<std::int64_t> batch_indices() {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<std::int64_t>(i * 37 % 50);
  return drawn;
}

template <class T>
void add_numbers(std::vector<double>& content, const T* numbers, std::size_t count) {
  content.insert(content.end(), numbers, numbers + count);
}

/// Two sharded tables, for one thread that acts for all ranks.
struct world {
  using table_type = ferry::sharded_table<float, host, ferry::sharding::dealt>;

  ferry::communicator comm = group_of(ranks);
  exec_space exec;
  std::vector<std::int64_t> indices = batch_indices();
  std::vector<std::int64_t> offsets{0, 5, 5, 12};
  std::vector<float> weights = std::vector<float>(static_cast<std::size_t>(n), 0.5f);
  table_type table{"a table with a label of more than thirty letters", comm, rows, width, unequal()};
  table_type second{"another table with such a long label", comm, rows, width, unequal()};
  ferry::tensor<float, host> dense{"dense", rows, width}, batch{"batch", n, width},
      pooled{"pooled", 4, width}, joined{"joined", 2, 2 * width};
  ferry::optim::adam adam{.lr = 1e-2};
  using state_type = decltype(ferry::optim::make_state(adam, table));
  state_type state = ferry::optim::make_state(adam, table);
  std::vector<state_type> states;

  world() {
    ferry::init::uniform(exec, table, -1, 1, 7);
    ferry::init::uniform(exec, second, -1, 1, 8);
    ferry::init::uniform(exec, dense, -1, 1, 9);
    ferry::init::uniform(exec, batch, -1, 1, 10);
    ferry::init::uniform(exec, pooled, -1, 1, 11);
    ferry::init::uniform(exec, joined, -1, 1, 12);
    states.push_back(ferry::optim::make_state(adam, table));
    states.push_back(ferry::optim::make_state(adam, second));
  }
  [[nodiscard]] auto plan() const { return ferry::make_plan(exec, indices, table); }

  [[nodiscard]] std::vector<double> contents() const {
    std::vector<double> content;
    const auto add = [&](const auto& array) { add_numbers(content, array.data(), array.size()); };
    const auto add_state = [&](const state_type& moments, int r) {
      const auto& shard = moments.shard(r);
      for (int f = 0; f < shard.fields(); ++f) add(shard.field(f));
      add(shard.row_steps());
      content.push_back(static_cast<double>(shard.steps()));
    };
    for (int r = 0; r < ranks; ++r) {
      add(table.shard(r));
      add(second.shard(r));
      add_state(state, r);
      for (const auto& moments : states) add_state(moments, r);
    }
    for (const auto* array : {&dense, &batch, &pooled, &joined}) add(*array);
    return content;
  }
};

/// A table of short rows by columns, each of which is a verb of its own.
struct columns_world {
  using view = Kokkos::View<float* [3], Kokkos::LayoutLeft, Kokkos::SharedHostPinnedSpace>;

  exec_space exec;
  std::vector<std::int64_t> indices = batch_indices();
  view table{"table", rows}, batch{"batch", n};

  columns_world() {
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        batch(i, c) = 1 + static_cast<float>(i + c);
  }
  [[nodiscard]] std::vector<double> contents() const {
    exec.fence("contents");
    return {table.data(), table.data() + table.size()};
  }
};

/// A verb and its name.
using call_type = std::pair<const char*, std::function<void(world&)>>;

std::vector<call_type> calls() {
  namespace optim = ferry::optim;
  return {
      {"step of all rows",
       [](world& kit) { ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.dense).wait(); }},
      {"step of all rows, per_row",
       [](world& kit) {
         ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.dense, ferry::step_count::per_row{})
             .wait();
       }},
      {"step",
       [](world& kit) {
         ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch).wait();
       }},
      {"step by rank",
       [](world& kit) {
         ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch,
                     ferry::reduce::by_rank{})
             .wait();
       }},
      {"step by a plan, catch_up",
       [](world& kit) {
         ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.plan(), kit.batch,
                     ferry::step_count::catch_up{})
             .wait();
       }},
      {"scatter", [](world& kit) { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch).wait(); }},
      {"scatter of means",
       [](world& kit) {
         ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch, ferry::duplicates::mean{}).wait();
       }},
      {"scatter_add",
       [](world& kit) { ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch).wait(); }},
      {"scatter_add by a plan",
       [](world& kit) { ferry::scatter_add(kit.exec, kit.table, kit.plan(), kit.batch).wait(); }},
      {"scatter_add staged",
       [](world& kit) {
         ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch, ferry::path::staged{}).wait();
       }},
      {"step_bags",
       [](world& kit) {
         ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.offsets, kit.pooled)
             .wait();
       }},
      {"step_bags with weights",
       [](world& kit) {
         ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.offsets, kit.pooled,
                          kit.weights, ferry::pooling::sum{})
             .wait();
       }},
      {"step_bags of maxima, by a plan",
       [](world& kit) {
         ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, kit.plan(), kit.offsets, kit.pooled,
                          ferry::pooling::max{})
             .wait();
       }},
      {"step_bags on two tables",
       [](world& kit) {
         ferry::step_bags(kit.exec, kit.adam, ferry::for_each_table(kit.table, kit.second), kit.states,
                          kit.indices, kit.offsets, kit.joined)
             .wait();
       }},
      {"clip_grad_norm",
       [](world& kit) {
         const auto plan = ferry::make_plan(kit.exec, kit.indices, rows);
         static_cast<void>(optim::clip_grad_norm(kit.exec, 1.0, kit.dense,
                                                 optim::sparse_grads(plan, kit.batch),
                                                 optim::bag_grads(plan, kit.offsets, kit.pooled))
                               .wait());
       }},
      {"clip_grad_norm over ranks",
       [](world& kit) {
         static_cast<void>(
             optim::clip_grad_norm(kit.exec, 1.0, optim::sparse_grads(kit.plan(), kit.batch), kit.dense)
                 .wait());
       }},
  };
}

TEST_CASE("a verb whose k-th allocation fails writes to no shard and scales no array",
          "[failing_heap][distributed]") {
  for (const auto& [label, call] : calls()) CHECK(survive_every_failure<world>(label, call) > 5);
}

TEST_CASE("a verb by columns whose k-th allocation fails writes to none", "[failing_heap]") {
  CHECK(survive_every_failure<columns_world>("scatter", [](columns_world& kit) {
          ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch).wait();
        }) > 5);
  CHECK(survive_every_failure<columns_world>("scatter_add", [](columns_world& kit) {
          ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch).wait();
        }) > 5);
  CHECK(survive_every_failure<columns_world>("scatter_add in any order", [](columns_world& kit) {
          ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch, ferry::duplicates::sum_any_order{})
              .wait();
        }) > 5);
}

TEST_CASE("a verb that a budget refuses writes to no shard and scales no array",
          "[failing_heap][distributed]") {
  const auto allow = [](std::size_t more) {
    const auto set = [&]<class Space>(Space) {
      const std::size_t present = ferry::memory_statistics<Space>().current;
      ferry::set_memory_budget<Space>(more == 0 ? 0 : present + more);
    };
    set(ferry::device_space{}), set(ferry::mapped_space{}), set(ferry::pinned_space{}),
        set(ferry::pageable_space{});
  };
  int refused = 0;
  for (const auto& [label, call] : calls()) {
    world never_refused;
    const auto before = never_refused.contents();
    call(never_refused);
    const auto expected = never_refused.contents();
    for (std::size_t more = 64; more < 100'000; more += more / 4) {
      world kit;
      start_anew();
      ferry::trim();
      allow(more);
      bool thrown = false;
      try {
        call(kit);
      } catch (const ferry::budget_exceeded&) {
        thrown = true;
      }
      allow(0);
      INFO(label << ", a budget of " << more);
      if (thrown) {
        ++refused;
        REQUIRE(kit.contents() == before);
        call(kit);
      }
      REQUIRE(kit.contents() == expected);
    }
  }
  CHECK(refused > 50);
}

}  // namespace ferry_test::failing_shards_test
