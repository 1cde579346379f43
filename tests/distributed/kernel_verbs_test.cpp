// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <utility>

/// Verbs of ranks on sharded tables, with all arrays in memory of devices: against the ordinary verb on the
/// batches one after the other.
namespace ferry_test::kernel_verbs_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;
using device = ferry::device_space;

/// Groups of one device, and of all devices in turn where there are several.
std::vector<std::vector<int>> groups() {
  const auto count = static_cast<int>(ferry::devices().size());
  std::vector<std::vector<int>> result;
  for (const int ranks : {1, 2, 4, 8}) result.emplace_back(static_cast<std::size_t>(ranks), 0);
  if (count > 1)
    for (const int ranks : {2, 3, 4, 8}) result.push_back(all_in_turn(ranks));
  return result;
}
ferry::communicator group_on(const std::vector<int>& ids) {
  return ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
}

template <class Array>
auto contents(const main_exec& exec, const Array& array) {
  using value = std::remove_const_t<typename ferry::array_traits<Array>::value_type>;
  ferry::tensor<value, host> read("read", array.rows(), array.width());
  ferry::copy(exec, array, read).wait();
  return std::vector<value>(read.data(), read.data() + read.size());
}
template <class T, class Space, class Spread>
std::vector<T> contents(const main_exec& exec, const ferry::sharded_table<T, Space, Spread>& table) {
  ferry::tensor<T, host> read("read", table.rows(), table.width());
  ferry::copy(exec, table, read).wait();
  return std::vector<T>(read.data(), read.data() + read.size());
}

/// An array in device memory with these values.
template <class T>
ferry::tensor<T, device> on_device(const main_exec& exec, ferry::device home, const std::vector<T>& values,
                                   std::size_t columns) {
  ferry::tensor<T, device> array("there", home, values.size() / columns, columns);
  ferry::tensor<T, host> host_copy = tensor_of(values, columns);
  ferry::copy(exec, host_copy, array).wait();
  return array;
}
template <class T>
ferry::tensor<T, device> on_device(const main_exec& exec, ferry::device home, const std::vector<T>& values) {
  ferry::tensor<T, device> array("there", home, values.size());
  if (!values.empty()) ferry::copy(exec, values, array).wait();
  return array;
}

#ifdef KOKKOS_ENABLE_THREADS
constexpr bool instances_work = false;
#else
constexpr bool instances_work = true;
#endif

/// Two shardings, for the verbs that are not tested with all.
template <class Test>
void for_some_shardings(const Test& test) {
  test(ferry::sharding::cyclic{});
  test(ferry::sharding::hashed<7>{});
}

/// verb(exec, table, indices, values) on a sharded table by all ranks, several times with fresh batches, and
/// on an ordinary table by one batch. `spoil` changes the indices of a rank. With `Mixes` for all shardings,
/// with batches that some ranks have in other spaces, and with plans. Tables and batches are `scale` times as
/// large.
template <class Space, bool Mixes = false, class Verb, class Spoil>
void compare(std::uint64_t salt, const Verb& verb, const Spoil& spoil, bool repeats = true,
             std::size_t scale = 1) {
  if (!instances_work) return;
  const watchdog guard("verbs by kernels");
  auto random = generator(salt);
  const main_exec first;
  for (const auto& ids : groups()) {
    const auto check = [&](auto spread) {
      const auto ranks = static_cast<int>(ids.size());
      const auto comm = group_on(ids);
      const std::size_t rows = scale * (1 + random() % 150);
      INFO(ranks << " ranks, the last on device " << ids.back() << ", " << rows << " rows, "
                 << decltype(spread)::name);
      ferry::tensor<float, Space> table("w", rows, width);
      ferry::sharded_table<float, Space, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(first, table, -1, 1, 5);
      ferry::init::uniform(first, big, -1, 1, 5);
      auto plain_verb = verb(table);
      auto sharded_verb = verb(big);
      for (int call = 0; call < 3; ++call) {
        batches<float> batch(random, ranks, rows, scale * (call == 1 ? 700 : 40), repeats);
        std::vector<std::int64_t> together;
        for (auto& list : batch.rows_of) {
          spoil(random, list, rows);
          together.insert(together.end(), list.begin(), list.end());
        }
        comm.run([&](int rank, const auto& exec) {
          const auto& mine = batch.indices_of(rank);
          const auto named = on_device(exec, comm.device(rank), mine);
          ferry::tensor<float, device> values("values", comm.device(rank), mine.size(), width);
          ferry::copy(exec, batch.values_of(rank), values).wait();
          sharded_verb(exec, named, values);
          // Memory of this rank that the others read was given back: it may be overwritten.
          ferry::init::constant(exec, values, 1e30f);
          if constexpr (Mixes) {
            ferry::copy(exec, batch.values_of(rank), values).wait();
            if (call == 0)
              sharded_verb(exec, ferry::make_plan(exec, named, rows, ferry::bounds::skip{}), values);
            else if (rank % 2 == 0)
              sharded_verb(exec, named, batch.values_of(rank));
            else
              sharded_verb(exec, mine, values);
          }
        });
        plain_verb(first, together, batch.whole);
        if constexpr (Mixes) {
          if (call == 0)
            plain_verb(first, ferry::make_plan(first, together, rows, ferry::bounds::skip{}), batch.whole);
          else
            plain_verb(first, together, batch.whole);
        }
        REQUIRE(contents(first, big) == contents(first, table));
      }
    };
    if constexpr (Mixes)
      for_each_sharding(check);
    else
      for_some_shardings(check);
  }
}

struct untouched {
  void operator()(std::mt19937_64&, std::vector<std::int64_t>&, std::size_t) const {}
};
/// Some indices outside of the table.
struct outside {
  void operator()(std::mt19937_64& random, std::vector<std::int64_t>& ids, std::size_t rows) const {
    for (std::size_t i = 0; i < ids.size() / 5; ++i)
      ids[random() % ids.size()] = random() % 2 == 0 ? -1 - static_cast<std::int64_t>(random() % 9)
                                                     : static_cast<std::int64_t>(rows + i);
  }
};

/// A scatter with policies.
template <class... Policies>
struct scattering {
  auto operator()(auto& table) const {
    return [&table](const auto& exec, const auto& named, const auto& values) {
      ferry::scatter(exec, table, named, values, Policies{}...).wait();
    };
  }
};
template <class... Policies>
struct adding {
  auto operator()(auto& table) const {
    return [&table](const auto& exec, const auto& named, const auto& values) {
      ferry::scatter_add(exec, table, named, values, Policies{}...).wait();
    };
  }
};
/// A step of adam with policies.
template <class... Policies>
struct stepping {
  auto operator()(auto& table) const {
    const ferry::optim::adam rule{.lr = 1e-2};
    return
        [&table, rule,
         state = std::make_shared<decltype(ferry::optim::make_state(rule, table))>(ferry::optim::make_state(
             rule, table))](const auto& exec, const auto& named, const auto& values) {
          ferry::step(exec, rule, table, *state, named, values, Policies{}...).wait();
        };
  }
};

}  // namespace

TEST_CASE("a step of ranks on devices gives the bits of one on an ordinary table", "[distributed][kernels]") {
  compare<device, true>(401, stepping<>{}, untouched{});
  compare<host>(402, stepping<>{}, untouched{});
}

TEST_CASE("a scatter of ranks on devices gives the bits of an ordinary one", "[distributed][kernels]") {
  compare<device>(403, scattering<>{}, untouched{});
  compare<device>(404, scattering<ferry::duplicates::first>{}, untouched{});
  compare<host>(405, scattering<ferry::duplicates::mean>{}, untouched{});
  compare<device>(406, scattering<ferry::duplicates::reject>{}, untouched{}, false);
  compare<device>(407, scattering<ferry::duplicates::assume_unique>{}, untouched{}, false);
}

TEST_CASE("large scatters of ranks on devices give the bits of an ordinary one", "[distributed][kernels]") {
  compare<device>(408, scattering<>{}, untouched{}, true, 25);
  compare<device>(409, scattering<ferry::duplicates::first, ferry::bounds::skip>{}, outside{}, true, 25);
  compare<device>(410, scattering<ferry::duplicates::assume_unique>{}, untouched{}, false, 100);
}

TEST_CASE("elements larger than their alignment are scattered whole", "[distributed][kernels]") {
  using triple = std::array<float, 3>;
  auto random = generator(47);
  constexpr std::size_t rows = 57, columns = 3;
  for (const auto& ids : groups()) {
    const auto comm = group_on(ids);
    CAPTURE(ids.size());
    const main_exec first;
    ferry::sharded_table<triple, device> big("w", comm, rows, columns);
    std::vector<triple> expected(rows * columns);
    for (triple& element : expected) element = {-1, -2, -3};
    ferry::copy(first, on_device(first, comm.device(0), expected, columns), big).wait();
    std::vector<std::vector<std::int64_t>> named(ids.size());
    std::vector<std::vector<triple>> values(ids.size());
    for (std::size_t r = 0; r < ids.size(); ++r)
      for (std::size_t row = r; row < rows; row += ids.size()) {
        named[r].push_back(static_cast<std::int64_t>(row));
        for (std::size_t c = 0; c < columns; ++c) {
          const auto number = static_cast<float>(random() % 1000);
          values[r].push_back({number, number + 0.25f, number + 0.5f});
          expected[row * columns + c] = values[r].back();
        }
      }
    comm.run([&](int rank, const auto& exec) {
      const auto r = static_cast<std::size_t>(rank);
      const auto home = comm.device(rank);
      const auto batch = on_device(exec, home, values[r], columns);
      ferry::scatter(exec, big, on_device(exec, home, named[r]), batch).wait();
    });
    CHECK(contents(first, big) == expected);
  }
}

TEST_CASE("a scatter_add of ranks on devices gives the bits of an ordinary one", "[distributed][kernels]") {
  compare<device>(408, adding<>{}, untouched{});
  compare<host, true>(409, adding<ferry::duplicates::mean>{}, untouched{});
}

TEST_CASE("bounds policies mean the same for ranks on devices", "[distributed][kernels]") {
  compare<device>(410, adding<ferry::bounds::skip>{}, outside{});
  compare<host>(411, adding<ferry::bounds::clamp>{}, outside{});
}

TEST_CASE("a bad index of one rank on devices writes nothing anywhere", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("bad indices");
  const main_exec first;
  const ferry::optim::adam rule{};
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    if (ranks < 2) continue;
    const auto comm = group_on(ids);
    ferry::sharded_table<float, device> big("w", comm, 30, width);
    ferry::init::uniform(first, big, -1, 1, 1);
    auto state = ferry::optim::make_state(rule, big);
    const auto before = contents(first, big);
    std::vector<std::string> messages(ids.size());
    const auto act = [&](bool bad) {
      comm.run([&](int rank, const auto& exec) {
        std::vector<std::int64_t> indices{1, 2, 3, 4, 5};
        if (bad && rank == ranks - 1) indices[3] = -8;
        const auto named = on_device(exec, comm.device(rank), indices);
        ferry::tensor<float, device> values("values", comm.device(rank), 5, width);
        ferry::init::constant(exec, values, 9);
        messages[static_cast<std::size_t>(rank)] =
            said<ferry::out_of_range>([&] { ferry::step(exec, rule, big, state, named, values).wait(); });
      });
    };
    act(true);
    for (const auto& text : messages)
      CHECK_THAT(text, ContainsSubstring("1 of " + std::to_string(5 * ranks) + " indices") &&
                           ContainsSubstring("index -8 at position 3 of rank " + std::to_string(ranks - 1)));
    CHECK(contents(first, big) == before);
    CHECK(state.steps() == 0);
    act(false);  // the group serves on
    for (const auto& text : messages) CHECK(text.empty());
    CHECK(contents(first, big) != before);
    CHECK(state.steps() == 1);
  }
}

TEST_CASE("a rank on a device that fails gives the others peer_error", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("failing ranks");
  const main_exec first;
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    if (ranks < 2) continue;
    const auto comm = group_on(ids);
    ferry::sharded_table<float, device> big("w", comm, 30, width);
    ferry::init::uniform(first, big, -1, 1, 1);
    std::vector<std::string> messages(ids.size());
    comm.run([&](int rank, const auto& exec) {
      const auto named = on_device(exec, comm.device(rank), std::vector<std::int64_t>{7, 8, 9});
      ferry::tensor<float, device> values("values", comm.device(rank), rank == 1 ? 2 : 3, width);
      ferry::init::constant(exec, values, 1);
      const auto act = [&] { ferry::scatter_add(exec, big, named, values).wait(); };
      messages[static_cast<std::size_t>(rank)] =
          rank == 1 ? said<ferry::invalid_argument>(act) : said<ferry::peer_error>(act);
      comm.barrier();
      const auto read = [&] { ferry::gather(exec, big, named, values).wait(); };
      const auto text = rank == 1 ? said<ferry::invalid_argument>(read) : said<ferry::peer_error>(read);
      expect(!text.empty(), "a gather");
    });
    for (const auto& text : messages) CHECK(!text.empty());
    // An exception that leaves the function of a rank.
    const auto text = said<std::runtime_error>([&] {
      comm.run([&](int rank, const auto& exec) {
        const auto named = on_device(exec, comm.device(rank), std::vector<std::int64_t>{7, 8, 9});
        ferry::tensor<float, device> values("values", comm.device(rank), 3, width);
        ferry::init::constant(exec, values, 1);
        if (rank == 0) throw std::runtime_error("rank 0 has enough");
        ferry::scatter_add(exec, big, named, values).wait();
      });
    });
    CHECK(text == "rank 0 has enough");
    comm.run([&](int rank, const auto& exec) {
      const auto named = on_device(exec, comm.device(rank), std::vector<std::int64_t>{7});
      ferry::tensor<float, device> out("out", comm.device(rank), 1, width);
      ferry::gather(exec, big, named, out).wait();
    });
  }
}

namespace {

template <class Space>
void gather_all(std::uint64_t salt) {
  if (!instances_work) return;
  const watchdog guard("gathers by kernels");
  auto random = generator(salt);
  const main_exec first;
  for (const auto& ids : groups())
    for_each_sharding([&](auto spread) {
      const auto ranks = static_cast<int>(ids.size());
      const auto comm = group_on(ids);
      const std::size_t rows = 1 + random() % 150;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      ferry::tensor<float, Space> table("w", rows, width);
      ferry::sharded_table<float, Space, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(first, table, -1, 1, 5);
      ferry::init::uniform(first, big, -1, 1, 5);
      const auto whole = contents(first, table);
      const batches<float> batch(random, ranks, rows, 300);
      const auto bad = static_cast<int>(random() % ids.size());
      comm.run([&](int rank, const auto& exec) {
        const auto& mine = batch.indices_of(rank);
        const auto named = on_device(exec, comm.device(rank), mine);
        std::vector<float> expected;
        for (const auto row : mine) {
          const auto source =
              whole.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width);
          expected.insert(expected.end(), source, source + static_cast<std::ptrdiff_t>(width));
        }
        ferry::tensor<float, device> out("out", comm.device(rank), mine.size(), width);
        const auto check = [&](const auto& indices, const char* label, auto... policies) {
          ferry::init::constant(exec, out, -7.0f);
          exec.fence("poisoned");
          ferry::gather(exec, big, indices, out, policies...).wait();
          expect(contents(exec, out) == expected, label);
        };
        check(named, "indices");
        check(mine, "indices in host memory");
        check(named, "by exchange", ferry::path::exchange{});
        if (rank % 2 == 0)
          check(named, "some by exchange", ferry::path::exchange{});
        else
          check(named, "others");
        const auto plan = ferry::make_plan(exec, named, rows);
        check(plan, "a plan");
        const auto distinct = on_device(exec, comm.device(rank), std::vector<std::int64_t>(mine.size(), 0));
        const auto same = ferry::make_plan(exec, distinct, rows);
        ferry::gather(exec, big, same, out).wait();  // each row once
        const auto first_rows = contents(exec, out);
        for (std::size_t i = 0; i < first_rows.size(); ++i)
          expect(first_rows[i] == whole[i % width], "a plan of one row");
        ferry::tensor<double, device> wide("wide", comm.device(rank), mine.size(), width);
        ferry::gather(exec, big, named, wide).wait();
        const auto converted = contents(exec, wide);
        expect(std::equal(converted.begin(), converted.end(), expected.begin(), expected.end()), "doubles");
        // A bad index throws on its own rank alone; the rows of good positions come.
        auto some = mine;
        some.push_back(rank == bad ? static_cast<std::int64_t>(rows) : 0);
        const auto partly = on_device(exec, comm.device(rank), some);
        ferry::tensor<float, device> more("more", comm.device(rank), some.size(), width);
        const auto text = said<ferry::out_of_range>([&] { ferry::gather(exec, big, partly, more).wait(); });
        expect(text.empty() == (rank != bad), "the rank with the bad index");
        auto got = contents(exec, more);
        got.resize(expected.size());
        expect(got == expected, "good positions");
      });
    });
}

}  // namespace

TEST_CASE("a gather of ranks on devices gives the rows of all shards", "[distributed][kernels]") {
  gather_all<device>(420);
  gather_all<host>(421);
}

}  // namespace ferry_test::kernel_verbs_test
