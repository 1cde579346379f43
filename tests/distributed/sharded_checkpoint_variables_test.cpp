// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"
#include "support/said.hpp"

#include <ferry/io.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Variables, generations and named checkpoints of ranks that save and load together.
namespace ferry_test::sharded_checkpoint_variables_test {

namespace {

constexpr int ranks = 3;
constexpr std::size_t rows = 50, width = 4;
using table_type = ferry::sharded_table<float, host>;

struct settings {
  char kind = 'k';
  double rate = 0.5;
};

/// The variables of one rank.
struct variables {
  std::int64_t turn = 0;
  std::string note = "none";
  settings options;
  std::mt19937 engine{1};
  std::vector<double> losses;

  void go_to(std::int64_t next) {
    turn = next;
    note = "turn " + std::to_string(next);
    options.rate = static_cast<double>(next);
    engine.seed(static_cast<std::uint32_t>(next));
    losses.assign(static_cast<std::size_t>(next), static_cast<double>(next));
  }
  bool operator==(const variables& second) const {
    return turn == second.turn && note == second.note && options.kind == second.options.kind &&
           options.rate == second.options.rate && engine == second.engine && losses == second.losses;
  }
  void add_to(ferry::io::checkpoint& run) {
    run.add("turn", turn);
    run.add("note", note);
    run.add("options", options, "options 1");
    run.add("engine", engine);
    run.add("losses", losses);
  }
};

bool is_turn(const variables& now, std::int64_t turn) {
  variables expected;
  expected.go_to(turn);
  return now == expected;
}

/// Assertions of Catch2 are for one thread.
void require(bool holds) {
  if (!holds) throw ferry::error("a rank found something else");
}

/// Runs act(rank, run, variables), each rank with objects of its own. Returns what each rank has thrown.
template <class Act>
std::vector<std::string> by_ranks(const ferry::communicator& comm, table_type& table, const std::string& path,
                                  const Act& act) {
  std::vector<std::string> words(static_cast<std::size_t>(comm.size()));
  comm.run([&](int rank) {
    words[static_cast<std::size_t>(rank)] = said<ferry::error>([&] {
      variables mine;
      ferry::io::checkpoint run(path, {.keep = 2});
      run.add("table", table);
      mine.add_to(run);
      act(rank, run, mine);
    });
  });
  return words;
}

}  // namespace

TEST_CASE("ranks save variables once, and load them all", "[distributed]") {
  const watchdog guard("variables");
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  const auto comm = group_of(ranks);
  table_type table("w", comm, rows, width);
  const exec_space exec;
  const std::vector<std::string> none(ranks);
  CHECK(by_ranks(comm, table, path, [&](int, auto& run, auto&) {
          require(!run.exists());  // collective
          require(!run.exists({.name = "best"}));
        }) == none);
  for (std::int64_t turn = 1; turn <= 4; ++turn) {
    ferry::init::constant(exec, table, static_cast<double>(turn));
    CHECK(by_ranks(comm, table, path, [&](int, auto& run, auto& mine) {
            mine.go_to(turn);
            run.save();
            if (turn == 2) run.save("best");
          }) == none);
  }
  std::vector<std::uint64_t> numbers;
  CHECK(by_ranks(comm, table, path, [&](int rank, auto& run, auto& mine) {
          require(run.exists());
          const auto generations = run.generations();
          require(generations.size() == 2);
          if (rank == 0) numbers = generations;
          run.load();
          require(is_turn(mine, 4));
          run.load({.generation = generations.front()});
          require(is_turn(mine, 3));
          require(run.names() == std::vector<std::string>{"best"});
          run.load({.name = "best"});
          require(is_turn(mine, 2));
        }) == none);
  REQUIRE(numbers.size() == 2);
  CHECK(table.shard(1).data()[0] == 2.0F);

  // A save by ranks loads in a program without ranks, and the other way round.
  ferry::tensor<float, host> plain("plain", rows, width);
  variables alone;
  ferry::io::checkpoint ordinary(path, {.keep = 2});
  ordinary.add("table", plain);
  alone.add_to(ordinary);
  ordinary.load({.generation = numbers.front()});
  CHECK(is_turn(alone, 3));
  CHECK(plain.data()[7] == 3.0F);
  alone.go_to(9);
  ordinary.save();
  CHECK(ordinary.generations().front() == numbers.back());
  CHECK(by_ranks(comm, table, path, [&](int, auto& run, auto& mine) {
          run.load();
          require(is_turn(mine, 9));
        }) == none);
  CHECK(table.shard(2).data()[0] == 3.0F);
}

TEST_CASE("a named checkpoint of ranks stays whatever numbers later saves have", "[distributed]") {
  const watchdog guard("variables");
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  {
    // Rank 0 alone has rows to write, so the number of the save is larger than that of its only data file.
    const auto comm = group_of(4);
    table_type table("w", comm, rows, width);
    ferry::init::constant(exec_space(), table, 5.0);
    CHECK(by_ranks(comm, table, path, [](int, auto& run, auto&) { run.save("best"); }) ==
          std::vector<std::string>(4));
  }
  ferry::tensor<float, host> plain("plain", rows, width);
  variables alone;
  ferry::io::checkpoint run(path);
  run.add("table", plain);
  alone.add_to(run);
  const auto best_is_whole = [&] {
    ferry::init::zeros(exec_space(), plain);
    run.load({.name = "best"});
    return plain.data()[7] == 5.0F;
  };
  const auto numbers_of_saves = [&] {
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 5; ++i) {
      run.save();
      numbers.push_back(run.generations().back());
      REQUIRE(best_is_whole());
    }
    return numbers;
  };
  CHECK(numbers_of_saves() == std::vector<std::uint64_t>{5, 6, 7, 8, 9});

  // A folder in which an older ferry gave a generation the number of the named one.
  const auto file_in_folder = [&](const char* name) { return std::filesystem::path(path) / name; };
  std::filesystem::create_directory(folder.path() + "/aside");
  for (const char* name : {"named-best", "data-1"})
    std::filesystem::rename(file_in_folder(name), folder.path() + "/aside/" + name);
  for (const char* name : {"manifest", "data-9"}) std::filesystem::remove(file_in_folder(name));
  for (int i = 0; i < 4; ++i) run.save();
  CHECK(run.generations() == std::vector<std::uint64_t>{4});
  for (const char* name : {"named-best", "data-1"})
    std::filesystem::rename(folder.path() + "/aside/" + name, file_in_folder(name));
  REQUIRE(best_is_whole());
  CHECK(numbers_of_saves() == std::vector<std::uint64_t>{5, 6, 7, 8, 9});
}

TEST_CASE("ranks that look for a checkpoint that is not there all hear of it", "[distributed]") {
  const watchdog guard("variables");
  const temporary_folder folder;
  const auto comm = group_of(ranks);
  table_type table("w", comm, rows, width);
  const auto words = by_ranks(comm, table, folder.path() + "/run", [](int, auto& run, auto&) { run.load(); });
  CHECK(has(words[0], "there is no such folder, and no checkpoint"));
  for (const auto& text : words) CHECK_FALSE(text.empty());
}

TEST_CASE("ranks whose variables differ are told which", "[distributed]") {
  const auto refused = [](const auto& change, const std::string& sentence) {
    const watchdog guard("variables");
    const temporary_folder folder;
    const auto comm = group_of(ranks);  // a difference breaks the group
    table_type table("w", comm, rows, width);
    const auto words = by_ranks(comm, table, folder.path() + "/run", [&](int rank, auto& run, auto& mine) {
      if (rank == 2) change(mine);
      run.save();
    });
    for (const auto& text : words) {
      INFO(text);
      CHECK(has(text, sentence));
    }
    CHECK_FALSE(ferry::io::checkpoint(folder.path() + "/run").exists());
  };
  refused([](auto& mine) { mine.turn = 7; },
          "rank 0 has entry 'turn': the array, value 0, rank 2 has entry 'turn': the array, value 7");
  refused([](auto& mine) { mine.note = "some"; }, "entry 'note'");
  refused([](auto& mine) { mine.options.rate = 3; }, "entry 'options': the array, value");
  refused([](auto& mine) { static_cast<void>(mine.engine()); }, "entry 'engine'");
  refused([](auto& mine) { mine.losses.resize(3); }, "entry 'losses': the array f64 [0], rank 2");
}

TEST_CASE("ranks that keep different numbers, or save under different names, are refused", "[distributed]") {
  const auto refused = [](const auto& act) {
    const watchdog guard("variables");
    const temporary_folder folder;
    const auto comm = group_of(ranks);
    table_type table("w", comm, rows, width);
    const std::string path = folder.path() + "/run";
    std::vector<std::string> words(ranks);
    comm.run([&](int rank) {
      words[static_cast<std::size_t>(rank)] = said<ferry::protocol_error>([&] { act(rank, table, path); });
    });
    for (const auto& text : words) CHECK_FALSE(text.empty());
  };
  refused([](int rank, auto& table, const std::string& path) {
    ferry::io::checkpoint run(path, {.keep = 2 + rank});
    run.add("table", table);
    run.save();
  });
  refused([](int rank, auto& table, const std::string& path) {
    ferry::io::checkpoint run(path);
    run.add("table", table);
    run.save(rank == 1 ? "best" : "last");
  });
  refused([](int rank, auto& table, const std::string& path) {
    ferry::io::checkpoint run(path);
    run.add("table", table);
    run.load({.generation = rank == 1 ? 1U : 0U});
  });
}

}  // namespace ferry_test::sharded_checkpoint_variables_test
