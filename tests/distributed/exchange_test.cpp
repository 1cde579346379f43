// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <algorithm>

namespace ferry_test::exchange_test {

namespace {

template <class Test>
void for_all(std::uint64_t seed, const Test& test) {
  const watchdog guard("path::exchange");
  auto random = generator(seed);
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 100;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      test(random, ranks, rows, spread);
    });
}

}  // namespace

TEST_CASE("path::exchange sends each row once", "[distributed]") {
  const watchdog guard("rows that cross");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> big("w", comm, 10, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  comm.run([&](int rank) {
    const std::vector<std::int64_t> mine(500, rank == 0 ? 7 : 4);  // the other's row
    const auto plan = ferry::make_plan(exec, mine, big);
    const auto answer = ferry::explain(exec, big, mine);
    for (const auto& candidate : answer.candidates)
      if (candidate.path == "exchange") expect(candidate.rows_from_others == 1, "one row");
    ferry::tensor<float, host> out("out", mine.size(), width), single_row("one", 1, width);
    ferry::gather(exec, big, plan, out, ferry::path::exchange{}).wait();
    ferry::gather(exec, big, std::vector<std::int64_t>{mine[0]}, single_row).wait();
    for (std::size_t p = 0; p < 500; ++p)
      expect(same_bits(out.data() + p * width, single_row.data(), width), "the row at each position");
    // The plan still serves writes, which need every position.
    auto earlier = out.first(499);
    ferry::init::constant(exec, earlier, 7);
    ferry::scatter(exec, big, plan, out).wait();
    ferry::gather(exec, big, plan, out, ferry::path::exchange{}).wait();
    expect(same_bits(out.data(), single_row.data(), width), "the last position is written");
    const std::vector<std::int64_t> bad{1, 1, rank == 1 ? 10 : 2};
    const auto text = said<ferry::out_of_range>(
        [&] { ferry::gather(exec, big, bad, out.first(3), ferry::path::exchange{}).wait(); });
    expect((text.find("index 10 at position 2") != std::string::npos) == (rank == 1),
           "a bad index of one rank");
    const bool uses_plan = rank == 0;
    expect(!said<ferry::protocol_error>([&] {
              if (uses_plan)
                ferry::gather(exec, big, plan, out, ferry::path::exchange{}).wait();
              else
                ferry::gather(exec, big, plan, out).wait();
            }).empty(),
           "with a plan all ranks take the same path");
  });
}

TEST_CASE("a sharded gather makes a new tensor", "[distributed]") {
  const exec_space exec;
  for_all(42, [&](auto& random, int ranks, std::size_t rows, auto spread) {
    const auto ids = indices<std::int64_t>(random, 60, rows);
    ferry::tensor<float, host> table("w", rows, width);
    const auto comm = group_of(ranks);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
    ferry::init::normal(exec, table, 0, 3, 77);
    ferry::init::normal(exec, big, 0, 3, 77);
    const auto expected = ferry::gather<host>(exec, table, ids).get();
    comm.run([&] {
      const auto rank_rows = ferry::gather<ferry::pageable_space>(exec, big, ids).get();
      expect(same_bits(rank_rows.data(), expected.data(), expected.size()), "a new tensor");
      const auto plan = ferry::make_plan(exec, ids, big);
      const auto wide = ferry::gather<host, double>(exec, big, plan, ferry::path::exchange{}).get();
      expect(std::equal(wide.data(), wide.data() + wide.size(), expected.data()), "converted");
      const std::vector<std::int64_t> some{0, -5, static_cast<std::int64_t>(rows)};
      const auto holes = ferry::gather<host>(exec, big, some, ferry::bounds::skip{}).get();
      for (std::size_t i = width; i < 3 * width; ++i) expect(holes.data()[i] == 0, "positions without a row");
      expect(same_bits(holes.data(), table.data(), width), "the good position");
      auto bad = ferry::gather<host>(exec, big, some);
      expect(has(said<ferry::out_of_range>([&] { (void)bad.get(); }), "2 of 3"), "errors");
    });
    const auto alone = ferry::gather<host>(exec, big, ids).get();
    REQUIRE(same_bits(alone.data(), expected.data(), expected.size()));
  });
}

TEST_CASE("explain counts the rows that travel and names the way that automatic takes", "[distributed]") {
  const exec_space exec;
  for_all(43, [&](auto& random, int ranks, std::size_t rows, auto spread) {
    const batches<float> batch(random, ranks, rows, 90);
    const auto comm = group_of(ranks);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
    ferry::init::uniform(exec, big, -1, 1, 7);
    comm.run([&](int rank) {
      auto mine = batch.indices_of(rank);
      std::int64_t total = 0, remote = 0, different = 0, different_others = 0;
      std::vector<bool> marks(rows, false);
      for (const auto row : mine) {
        const bool far = !decltype(spread)::replicates && big.owner(row) != rank;
        const auto place = static_cast<std::size_t>(row);
        ++total;
        remote += far;
        different += !marks[place];
        different_others += !marks[place] && far;
        marks[place] = true;
      }
      const auto check = [&](const auto& named, bool fetches_once) {
        const auto answer = ferry::explain(exec, big, named);
        const bool peers = answer.candidates.size() == 3;
        expect(answer.candidates.size() == (peers ? 3 : 2) && answer.candidates[0].picked &&
                   !answer.candidates[1].picked && !answer.candidates.back().picked,
               "picked");
        const std::string routed = fetches_once ? "exchange" : "by position";
        expect(answer.picked == (peers ? "peer" : routed) && answer.candidates[peers ? 1 : 0].path == routed,
               answer.to_string().c_str());
        expect(peers == (decltype(spread)::replicates || !packs_batches()), "kernels of the rank");
        expect(answer.candidates[0].path == answer.picked, "the picked one first");
        for (const auto& candidate : answer.candidates) {
          const bool is_once = candidate.path == "exchange" || (candidate.path == "peer" && fetches_once);
          expect(candidate.rows == (is_once ? different : total), "rows");
          expect(candidate.rows_from_others == (is_once ? different_others : remote), "rows of others");
          expect(candidate.bytes_from_others ==
                     candidate.rows_from_others * static_cast<std::int64_t>(width * 4),
                 "bytes");
        }
        expect(answer.to_string().find(answer.call + "\n* " + answer.picked) == 0, "the text");
      };
      const auto plan = ferry::make_plan(exec, mine, rows);
      const bool halves = !decltype(spread)::replicates && ranks > 1 &&
                          different <= static_cast<std::int64_t>(mine.size()) / 2;
      check(mine, false);
      check(plan, halves);
      check(ferry::make_plan(exec, mine, big), halves && !packs_batches());
      ferry::tensor<float, host> a("a", mine.size(), width), b("b", mine.size(), width);
      ferry::gather(exec, big, plan, a).wait();
      ferry::gather(exec, big, mine, b).wait();
      expect(same_bits(a.data(), b.data(), a.size()), "the rows of either way");
    });
    expect(ferry::explain(exec, big, batch.rows).candidates[1].rows_from_others == 0, "one thread");
  });
}

}  // namespace ferry_test::exchange_test
