// SPDX-License-Identifier: Apache-2.0
#include "shards_kit.hpp"

#include <ferry/cache.hpp>

/// Writes to sharded quantized tables: the bytes of one table that gets the batches of all ranks by rank.
namespace ferry_test::quantized_shard_writes_test {

namespace duplicates = ferry::duplicates;

enum class shardings { some, all };

template <class T>
ferry::tensor<T, host> tensor_of(const std::vector<T>& numbers, std::size_t columns) {
  return make<host>("batch", numbers.size() / columns, columns, numbers);
}

/// The batches of the ranks, some of which have none; `whole` has all of them by rank.
template <class T>
struct rank_batches {
  std::vector<std::int64_t> rows;
  ferry::tensor<T, host> whole;
  std::vector<std::vector<std::int64_t>> rows_of;
  std::vector<ferry::tensor<T, host>> parts;

  rank_batches(std::mt19937_64& random, int ranks, std::size_t table_rows, std::size_t columns,
               bool repeats = true) {
    auto distinct = unique_indices<std::int64_t>(random, table_rows, table_rows);
    std::vector<T> numbers;
    for (int r = 0; r < ranks; ++r) {
      std::size_t count = random() % 4 == 0 ? 0 : random() % 50;
      if (!repeats) count = std::min(count, distinct.size());
      std::vector<std::int64_t> named;
      if (repeats) {
        named = indices<std::int64_t>(random, count, table_rows);
      } else {
        named.assign(distinct.end() - static_cast<std::ptrdiff_t>(count), distinct.end());
        distinct.resize(distinct.size() - count);
      }
      const auto part = numbers_for<T>(random, count * columns);
      rows.insert(rows.end(), named.begin(), named.end());
      numbers.insert(numbers.end(), part.begin(), part.end());
      rows_of.push_back(std::move(named));
      parts.push_back(tensor_of(part, columns));
    }
    whole = tensor_of(numbers, columns);
  }
  const auto& indices_of(int rank) const { return rows_of[static_cast<std::size_t>(rank)]; }
  const auto& values_of(int rank) const { return parts[static_cast<std::size_t>(rank)]; }
};

/// An ordinary table of random numbers, and a sharded one with the same bytes.
template <class Q, class Space, class ScaleSpace, class Spread>
struct tables {
  ferry::quantized_tensor<Q, host> table;
  ferry::sharded_quantized_table<Q, Space, ScaleSpace, Spread> big;

  template <class Exec>
  tables(const Exec& exec, std::mt19937_64& random, const ferry::communicator& comm, std::size_t rows,
         std::size_t columns, const Spread& spread)
      : table("weights", rows, columns), big("weights", comm, rows, columns, spread) {
    if constexpr (Q::has_tensor_scale) table.set_scale(0.37f);
    ferry::quantize(exec, make<host>("numbers", rows, columns, numbers_for<float>(random, rows * columns)),
                    table)
        .wait();
    ferry::copy(exec, table, big).wait();
  }
};

/// Scatters by one thread for the group and by indices; by plans of both kinds, too, without policies or by sums.
template <class Q, class Value, shardings Which = shardings::some, class Space = host,
          class ScaleSpace = Space, class... Policies>
void compare_scatters(std::uint64_t salt, std::size_t columns, Policies... policies) {
  const watchdog guard("scatter to sharded quantized tables");
  auto random = generator(salt);
  const rank_space exec;
  using chosen = ferry::detail::chosen_policies<Policies...>;
  using policy = typename chosen::template get<ferry::duplicates_category, duplicates::last>;
  constexpr bool may_repeat = policy::needs_plan && !policy::forbids;
  constexpr bool by_plans = sizeof...(Policies) == 0 || std::is_same_v<policy, duplicates::sum>;
  for (const int ranks : {1, 2, 3, 4})
    for_each_sharding<Which == shardings::all>([&](auto spread) {
      const std::size_t rows = 1 + random() % 90;
      const auto comm = group_of(ranks);
      tables<Q, Space, ScaleSpace, decltype(spread)> pair(exec, random, comm, rows, columns, spread);
      auto& [table, big] = pair;
      for (int turn = 0; turn < (by_plans ? 4 : 2); ++turn) {
        INFO(Q::name << ", " << ranks << " ranks, " << rows << " x " << columns << ", turn " << turn);
        const rank_batches<Value> batch(random, ranks, rows, columns, may_repeat);
        ferry::scatter(exec, table, batch.rows, batch.whole, policies...).wait();
        if (turn == 0)
          ferry::scatter(exec, big, batch.rows, batch.whole, policies...).wait();
        else
          comm.run([&](int rank) {
            const auto& named = batch.indices_of(rank);
            const auto& values = batch.values_of(rank);
            if (turn == 1)
              ferry::scatter(exec, big, named, values, policies...).wait();
            else if constexpr (!by_plans)
              return;
            else if (turn == 2)
              ferry::scatter(exec, big, ferry::make_plan(exec, named, big), values, policies...).wait();
            else
              ferry::scatter(exec, big, ferry::make_plan(exec, named, rows), values, policies...).wait();
          });
        REQUIRE(same(bytes_of_shards(exec, big), bytes_of(table)));
      }
    });
}

// The encoding of a row is that of one table, which quantized_scatter_test compares for every quantization and type; sharding knows
// codes of bytes, of part of a byte, with and without scales, with a factor, and records.
TEST_CASE("scatter encodes rows of shards as those of one table", "[quantized][distributed]") {
  compare_scatters<quantization::mxfp8, float, shardings::all>(801, 64);
  compare_scatters<quantization::nvfp4, double, shardings::some, host, ferry::device_space>(804, 48);
  compare_scatters<six_bits, float>(805, 32);
  for (const std::size_t columns : {1u, 7u, 131u}) compare_scatters<by_rows, float>(813, columns);
  for (const std::size_t columns : {1u, 13u, 64u})
    compare_scatters<quantization::rowwise_int8, float>(814, columns);
}
TEST_CASE("scatter to shards of codes by every policy", "[quantized][distributed]") {
  compare_scatters<quantization::mxfp8, float>(821, 32, duplicates::first{});
  compare_scatters<quantization::mxfp8, ferry::half_t>(822, 64, duplicates::sum{});
  compare_scatters<quantization::mxfp8, float>(823, 32, duplicates::mean{}, ferry::path::direct{});
  compare_scatters<quantization::rowwise_int8, float, shardings::all>(824, 9, duplicates::sum{});
  compare_scatters<quantization::e4m3, float>(826, 20, duplicates::assume_unique{}, ferry::path::staged{});
  compare_scatters<quantization::mxfp8, float>(827, 32, duplicates::reject{});
}

/// Fields and counters of the shards' states are those of one state.
template <class Exec, class State, class Whole, class Table>
bool same_state(const Exec& exec, const State& state, Whole& whole_state, const Table& big) {
  bool same = state.steps() == whole_state.steps() && state.skipped() == whole_state.skipped();
  exec.fence("read");
  const auto same_rows = [&](const auto& part, const auto& whole, int rank) {
    const auto shard_numbers = take(part), numbers = take(whole);
    const std::size_t columns = big.rows() == 0 ? 0 : numbers.size() / big.rows();
    for (std::int64_t i = 0; i < big.rows_of(rank); ++i)
      same =
          same && std::equal(shard_numbers.begin() + i * static_cast<std::int64_t>(columns),
                             shard_numbers.begin() + (i + 1) * static_cast<std::int64_t>(columns),
                             numbers.begin() + big.global_row(rank, i) * static_cast<std::int64_t>(columns));
  };
  for (int r = 0; r < big.comm().size(); ++r) {
    const auto& shard = state.shard(r);
    for (int f = 0; f < whole_state.fields(); ++f) same_rows(shard.field(f), whole_state.field(f), r);
    for (int f = 0; f < State::shard_type::row_fields; ++f)
      same_rows(shard.row_field_at(f), whole_state.row_field_at(f), r);
    if (whole_state.row_steps().size() != 0) same_rows(shard.row_steps(), whole_state.row_steps(), r);
  }
  return same;
}

/// Steps by one thread for the group and by indices; without policies, or with all shardings, also by plans of both kinds and on
/// all rows: how a batch names its rows is over when policies look at them.
template <class Q, class Grad, shardings Which = shardings::some, class Space = host,
          class ScaleSpace = Space, class Rule, class... Policies>
void compare_steps(std::uint64_t salt, std::size_t columns, const Rule& rule, Policies... policies) {
  const watchdog guard("steps on sharded quantized tables");
  auto random = generator(salt);
  const rank_space exec;
  using chosen = ferry::detail::chosen_policies<Policies...>;
  constexpr bool sums_by_rank = chosen::template names<ferry::reduce_category>;
  constexpr bool in_every_form = sizeof...(Policies) == 0 || Which == shardings::all;
  for (const int ranks : {1, 2, 3, 4})
    for_each_sharding<Which == shardings::all>([&](auto spread) {
      const std::size_t rows = 1 + random() % 70;
      const auto comm = group_of(ranks);
      tables<Q, Space, ScaleSpace, decltype(spread)> pair(exec, random, comm, rows, columns, spread);
      auto& [table, big] = pair;
      auto plain = ferry::optim::make_state(rule, table);
      auto state = ferry::optim::make_state<host>(rule, big);
      static_assert(std::is_same_v<typename decltype(state)::value_type, float>);
      plain.set_seed(99);
      state.set_seed(99);
      for (int turn = 0; turn < (in_every_form ? 5 : 2); ++turn) {
        INFO(Q::name << ", " << ranks << " ranks, " << rows << " x " << columns << ", turn " << turn);
        rank_batches<Grad> batch(random, ranks, rows, columns);
        if constexpr (sums_by_rank) {  // sums of whole numbers do not depend on their order
          const auto make_whole = [](auto& numbers) {
            for (std::size_t i = 0; i < numbers.size(); ++i)
              numbers.data()[i] = Grad(std::rint(number(numbers.data()[i])));
          };
          make_whole(batch.whole);
          for (auto& part : batch.parts) make_whole(part);
        }
        if (turn == 4) {
          if constexpr (in_every_form) {
            const auto grads = make<host>("grads", rows, columns, numbers_for<Grad>(random, rows * columns));
            ferry::step(exec, rule, table, plain, grads, policies...).wait();
            comm.run([&](int rank) {
              ferry::tensor<Grad, host> part("part", big.rows_of(rank), columns);
              for (std::int64_t i = 0; i < big.rows_of(rank); ++i)
                std::copy_n(grads.data() + static_cast<std::size_t>(big.global_row(rank, i)) * columns,
                            columns, part.data() + static_cast<std::size_t>(i) * columns);
              ferry::step(exec, rule, big, state, part, policies...).wait();
            });
          }
        } else {
          if constexpr (sums_by_rank)
            ferry::step(exec, rule, table, plain, batch.rows, batch.whole).wait();
          else
            ferry::step(exec, rule, table, plain, batch.rows, batch.whole, policies...).wait();
          if (turn == 0)
            ferry::step(exec, rule, big, state, batch.rows, batch.whole, policies...).wait();
          else
            comm.run([&](int rank) {
              const auto& named = batch.indices_of(rank);
              const auto& grads = batch.values_of(rank);
              if (turn == 1)
                ferry::step(exec, rule, big, state, named, grads, policies...).wait();
              else if constexpr (!in_every_form)
                return;
              else if (turn == 2)
                ferry::step(exec, rule, big, state, ferry::make_plan(exec, named, big), grads, policies...)
                    .wait();
              else
                ferry::step(exec, rule, big, state, ferry::make_plan(exec, named, rows), grads, policies...)
                    .wait();
            });
        }
        REQUIRE(same(bytes_of_shards(exec, big), bytes_of(table)));
        REQUIRE(same_state(exec, state, plain, big));
      }
    });
}

constexpr ferry::rounding::stochastic stochastic;

TEST_CASE("a step on shards of codes gives the bytes of one table", "[quantized][distributed][optim]") {
  const ferry::optim::adam adam{.lr = 0.1};
  const ferry::optim::sgd sgd{.lr = 0.5, .momentum = 0.9};
  compare_steps<quantization::mxfp8, ferry::half_t, shardings::some, host, ferry::device_space>(831, 32, sgd);
  compare_steps<quantization::rowwise_int8, float>(836, 13, adam);
}
TEST_CASE("stochastic rounding of shards of codes goes by the rows of the whole table",
          "[quantized][distributed][optim]") {
  const ferry::optim::adam adam{.lr = 0.1};
  compare_steps<quantization::mxfp8, float, shardings::all>(841, 96, adam, stochastic);
  compare_steps<quantization::nvfp4, float>(842, 48, adam, stochastic);
  compare_steps<by_rows, float>(844, 1, adam, stochastic);
}
TEST_CASE("steps on shards of codes by rules and policies", "[quantized][distributed][optim]") {
  using ferry::optim::chain, ferry::optim::clip_norm, ferry::optim::sgd;
  compare_steps<quantization::mxfp8, float>(851, 32, ferry::optim::rowwise_adagrad{.lr = 0.1}, stochastic);
  compare_steps<quantization::e4m3, double>(852, 12, ferry::optim::adam{.lr = 0.1},
                                            ferry::step_count::per_row{});
  compare_steps<quantization::mxfp8, float>(853, 32, sgd{.lr = 0.5}, ferry::reduce::by_rank{});
  compare_steps<by_rows, float>(855, 10, chain{sgd{.lr = 0.5}, clip_norm{0.75}}, ferry::nonfinite::reject{},
                                ferry::path::direct{});
}

#ifndef KOKKOS_ENABLE_THREADS

/// Ranks on the devices of the machine, in turn. Owners read values in the memory of other ranks.
template <class Q, class Space, class ScaleSpace = Space>
void write_on_devices(std::uint64_t salt, std::size_t columns) {
  const watchdog guard("writes to quantized shards on devices");
  auto random = generator(salt);
  const exec_space exec;
  const auto count = static_cast<int>(ferry::devices().size());
  const ferry::optim::adam rule{.lr = 0.1};
  for (const int ranks : {2, 3, std::max(4, count)}) {
    std::vector<int> ids;
    for (int r = 0; r < ranks; ++r) ids.push_back(r % count);
    const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
    const std::size_t rows = 20 + random() % 130;
    CAPTURE(Q::name, Space::name, ScaleSpace::name, ranks, rows, columns);
    tables<Q, Space, ScaleSpace, ferry::sharding::cyclic> pair(exec, random, comm, rows, columns, {});
    auto& [table, big] = pair;
    auto plain = ferry::optim::make_state(rule, table);
    auto state = ferry::optim::make_state(rule, big);
    plain.set_seed(7);
    state.set_seed(7);
    const auto write = [&](const auto& act_on_table, const auto& act_on_shards) {
      const rank_batches<float> batch(random, ranks, rows, columns);
      act_on_table(batch.rows, batch.whole);
      comm.run([&](int rank, const auto& instance) {
        const auto& named = batch.indices_of(rank);
        const auto device_of_rank = ferry::device_of(instance);
        ferry::tensor<std::int64_t, ferry::device_space> list("indices", device_of_rank, named.size());
        ferry::tensor<float, ferry::device_space> values("values", device_of_rank, named.size(), columns);
        ferry::copy(instance, named, list).wait();
        ferry::copy(instance, batch.values_of(rank), values).wait();
        act_on_shards(instance, list, values);
        const auto gathers = [&](const char* claim, const auto& read, auto... path) {
          ferry::init::constant(instance, values, -7.0f);
          ferry::gather(instance, big, read, values, path...).wait();
          ferry::tensor<float, host> expected("expected", named.size(), columns);
          ferry::gather(exec, table, named, expected).wait();
          expect(same_values(take(values), take(expected)), claim);
        };
        gathers("by peers", list, ferry::path::peer{});
        gathers("together", list);
        gathers("exchanged", list, ferry::path::exchange{});
        gathers("a sharded plan", ferry::make_plan(instance, named, big));
        comm.barrier();
      });
      REQUIRE(same(bytes_of_shards(exec, big), bytes_of(table)));
    };
    const auto scatter_by = [&](auto... policies) {
      write([&](const auto& named,
                const auto& values) { ferry::scatter(exec, table, named, values, policies...).wait(); },
            [&](const auto& instance, const auto& named, const auto& values) {
              ferry::scatter(instance, big, named, values, policies...).wait();
            });
    };
    const auto step_by = [&](auto... policies) {
      write(
          [&](const auto& named, const auto& grads) {
            ferry::step(exec, rule, table, plain, named, grads, policies...).wait();
          },
          [&](const auto& instance, const auto& named, const auto& grads) {
            ferry::step(instance, rule, big, state, named, grads, policies...).wait();
          });
    };
    scatter_by();
    scatter_by(duplicates::first{});
    scatter_by(duplicates::sum{});
    scatter_by(ferry::path::direct{}, duplicates::mean{});
    step_by();
    step_by(stochastic);
    write([&](const auto& named,
              const auto& grads) { ferry::step(exec, rule, table, plain, named, grads).wait(); },
          [&](const auto& instance, const auto& named, const auto& grads) {
            ferry::step(instance, rule, big, state, ferry::make_plan(instance, named, big), grads).wait();
          });
    write([&](const auto& named, const auto& values) { ferry::scatter(exec, table, named, values).wait(); },
          [&](const auto& instance, const auto& named, const auto& values) {
            ferry::scatter(instance, big, ferry::make_plan(instance, named, big), values).wait();
          });
  }
}

TEST_CASE("ranks on devices write rows of codes", "[quantized][distributed]") {
  write_on_devices<quantization::nvfp4, ferry::device_space, ferry::mapped_space>(862, 48);
  write_on_devices<quantization::rowwise_int8, ferry::device_space>(864, 37);
  write_on_devices<quantization::mxfp8, ferry::mapped_space, ferry::device_space>(865, 32);
}
#endif

/// A batch of one rank that is refused leaves all shards and states as they are, and all ranks hear of it.
template <class Q>
void refuse_everywhere(std::uint64_t salt, std::size_t columns) {
  const watchdog guard("refusals of writes to quantized shards");
  auto random = generator(salt);
  const rank_space exec;
  constexpr int ranks = 3;
  constexpr std::size_t rows = 30;
  const auto comm = group_of(ranks);
  tables<Q, host, host, ferry::sharding::block> pair(exec, random, comm, rows, columns, {});
  auto& [table, big] = pair;
  const ferry::optim::adam rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, big);
  auto plain = ferry::optim::make_state(rule, table);
  const auto before = bytes_of(table);
  const auto values = tensor_of(numbers_for<float>(random, 4 * columns), columns);
  const std::vector<std::vector<std::int64_t>> bad_indices{{1, 2, 29, 4}, {5, 30, 6, 7}, {9, 10, 11, 12}};
  const std::vector<std::vector<std::int64_t>> repeats{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 3, 11, 12}};
  auto infinite = tensor_of(numbers_for<float>(random, 4 * columns), columns);
  infinite.data()[columns] = HUGE_VALF;
  const auto refused = [&]<class Error>(std::type_identity<Error>, const char* word, const auto& act) {
    std::array<std::string, ranks> texts;
    comm.run([&](int rank) { texts[static_cast<std::size_t>(rank)] = said<Error>([&] { act(rank); }); });
    for (const auto& text : texts) {
      INFO(text);
      CHECK(has(text, word));
      CHECK(has(text, "weights"));
    }
    CHECK(same(bytes_of_shards(exec, big), before));
    CHECK(state.steps() == 0);
    CHECK(same_state(exec, state, plain, big));
  };
  const std::type_identity<ferry::out_of_range> range;
  const std::type_identity<ferry::invalid_argument> argument;
  const auto batch_of = [](const auto& lists, int rank) -> const auto& {
    return lists[static_cast<std::size_t>(rank)];
  };
  refused(range, "30", [&](int r) { ferry::scatter(exec, big, batch_of(bad_indices, r), values).wait(); });
  refused(range, "rank 1", [&](int r) {
    ferry::scatter(exec, big, ferry::make_plan(exec, batch_of(bad_indices, r), big), values).wait();
  });
  refused(range, "30",
          [&](int r) { ferry::step(exec, rule, big, state, batch_of(bad_indices, r), values).wait(); });
  refused(argument, "3", [&](int r) {
    ferry::scatter(exec, big, batch_of(repeats, r), values, duplicates::reject{}).wait();
  });
  refused(argument, "3", [&](int r) {
    ferry::step(exec, rule, big, state, batch_of(repeats, r), values, duplicates::reject{}).wait();
  });
  refused(argument, "rank 2", [&](int r) {
    ferry::step(exec, rule, big, state, batch_of(repeats, r), r == 2 ? infinite : values,
                ferry::nonfinite::reject{})
        .wait();
  });
}

TEST_CASE("a refused write leaves all shards of codes as they are", "[quantized][distributed]") {
  refuse_everywhere<quantization::mxfp8>(871, 32);
  refuse_everywhere<quantization::rowwise_int8>(872, 11);
}

TEST_CASE("a shard whose scales may not be written keeps its codes", "[quantized][distributed]") {
  const watchdog guard("refusals of scales of quantized shards");
  auto random = generator(873);
  const rank_space exec;
  constexpr std::size_t rows = 20, columns = 32;
  const auto comm = group_of(2);
  const auto values = tensor_of(numbers_for<float>(random, 4 * columns), columns);
  const ferry::tensor<float, host> no_values("no_values", 0, columns);
  const std::vector<std::int64_t> ids{1, 2, 17, 18}, none;
  for (const int refusing : {0, 1})
    for (const bool by_ranks : {false, true}) {
      CAPTURE(refusing, by_ranks);
      tables<quantization::mxfp8, host, host, ferry::sharding::cyclic> pair(exec, random, comm, rows, columns,
                                                                            {});
      auto& big = pair.big;
      const auto shard_bytes = [&] {
        return std::pair(bytes_of(take(big.codes().shard(refusing))),
                         bytes_of(take(big.scales().shard(refusing))));
      };
      const auto before = shard_bytes();
      const ferry::cached_table hot(big.scales().shard(refusing), ferry::cache::first{.rows = 5});
      CHECK_THROWS_AS(
          [&] {
            if (by_ranks)
              comm.run([&](int rank) {
                ferry::scatter(exec, big, rank == 0 ? ids : none, rank == 0 ? values : no_values).wait();
              });
            else
              ferry::scatter(exec, big, ids, values).wait();
          }(),
          ferry::invalid_argument);
      CHECK(shard_bytes() == before);
    }
}

TEST_CASE("ranks agree on shapes, factors and states of shards of codes", "[quantized][distributed]") {
  const watchdog guard("arguments of writes to quantized shards");
  using table_type = ferry::sharded_quantized_table<quantization::e4m3, host>;
  const rank_space exec;
  const auto comm = group_of(2);
  const ferry::optim::sgd rule;
  table_type big("big", comm, 10, 4), wide("wide", comm, 10, 8);
  auto state = ferry::optim::make_state(rule, big);
  ferry::tensor<float, host> narrow("narrow", 2, 3), grads("grads", 2, 8);
  std::fill_n(grads.data(), grads.size(), 1.0f);
  const std::vector<int> ids{1, 2};
  const auto shape = said<ferry::invalid_argument>([&] { ferry::scatter(exec, big, ids, narrow).wait(); });
  CHECK(has(shape, "'big'"));
  CHECK(has(shape, "10 x 4"));
  CHECK(has(said<ferry::invalid_argument>([&] { ferry::step(exec, rule, wide, state, ids, grads).wait(); }),
            "not made for a table like 'wide' [10 x 8] of e4m3"));
  CHECK(state.steps() == 0);
  // Ranks that hold objects of their own agree on the factor.
  for (const bool steps : {false, true}) {
    const auto strangers = group_of(2);
    CHECK_THROWS_AS(strangers.run([&](int rank) {
      table_type mine("mine", strangers, 4, 8);
      mine.set_scale(rank == 1 ? 0.5f : 0.25f);
      auto moments = ferry::optim::make_state(rule, mine);
      if (steps)
        ferry::step(exec, rule, mine, moments, ids, grads).wait();
      else
        ferry::scatter(exec, mine, ids, grads).wait();
    }),
                    ferry::protocol_error);
  }
  // No rows, and no ranks with values.
  table_type no_rows("no_rows", comm, 0, 4);
  auto no_state = ferry::optim::make_state(rule, no_rows);
  const ferry::tensor<float, host> no_values("no_values", 0, 4);
  comm.run([&] {
    ferry::scatter(exec, no_rows, std::vector<int>{}, no_values).wait();
    ferry::step(exec, rule, no_rows, no_state, std::vector<int>{}, no_values).wait();
  });
  CHECK(no_state.steps() == 1);
}

TEST_CASE("checkpoints hold the codes, factors and states of sharded quantized tables",
          "[quantized][distributed][io]") {
  const watchdog guard("checkpoints of states of quantized shards");
  auto random = generator(881);
  const rank_space exec;
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  constexpr std::size_t rows = 41, columns = 32;
  const auto comm = group_of(3);
  const ferry::optim::adam rule{.lr = 0.1};
  tables<quantization::nvfp4, host, ferry::device_space, ferry::sharding::hashed<3>> pair(exec, random, comm,
                                                                                          rows, columns, {});
  auto& [table, big] = pair;
  auto plain = ferry::optim::make_state(rule, table);
  auto state = ferry::optim::make_state(rule, big);
  const auto train = [&](auto& weights, auto& moments) {
    const rank_batches<float> batch(random, 1, rows, columns);
    ferry::step(exec, rule, weights, moments, batch.rows, batch.whole, stochastic).wait();
  };
  train(big, state);
  train(big, state);
  {
    ferry::io::checkpoint run(path);
    run.add("w", big);
    run.add("adam", rule, state);
    comm.run([&] { run.save(); });
  }
  {
    ferry::io::checkpoint run(path);
    run.add("w", table);
    run.add("adam", rule, plain);
    table.set_scale(0.5f);
    run.load();
    CHECK(table.scale() == big.scale());
  }
  CHECK(same(bytes_of_shards(exec, big), bytes_of(table)));
  CHECK(same_state(exec, state, plain, big));
  CHECK(plain.seed() == state.seed());
  const rank_batches<float> batch(random, 3, rows, columns);
  ferry::step(exec, rule, table, plain, batch.rows, batch.whole, stochastic).wait();
  comm.run([&](int rank) {
    ferry::step(exec, rule, big, state, batch.indices_of(rank), batch.values_of(rank), stochastic).wait();
    comm.barrier();
  });
  CHECK(same(bytes_of_shards(exec, big), bytes_of(table)));
  CHECK(same_state(exec, state, plain, big));
}

}  // namespace ferry_test::quantized_shard_writes_test
