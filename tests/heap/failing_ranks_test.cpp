// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "heap/heap.hpp"
#include "support/folder.hpp"

#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace ferry_test::failing_ranks_test {

namespace {

constexpr std::int64_t rows = 60, n = 24;
constexpr int ranks = 3;

/// A group with two tables, and a batch for each rank.
struct world {
  ferry::communicator comm;
  exec_space exec;
  std::vector<std::int64_t> indices = drawn();
  ferry::sharded_table<float, host> table{"a table with a label of more than thirty letters", comm, rows,
                                          width};
  ferry::sharded_table<float, host, ferry::sharding::block> other{"the other table", comm, rows, width};
  ferry::tensor<float, host> whole{"whole", rows, width}, none{"none", 0, width};
  ferry::optim::adam adam{.lr = 1e-2};
  decltype(ferry::optim::make_state(adam, table)) state = ferry::optim::make_state(adam, table);
  std::vector<ferry::tensor<float, host>> batch;

  explicit world(const ferry::communicator& group) : comm(group) {
    ferry::init::uniform(exec, table, -1, 1, 7);
    ferry::init::uniform(exec, other, -1, 1, 8);
    ferry::init::uniform(exec, whole, -1, 1, 9);
    for (int r = 0; r < ranks; ++r) {
      batch.emplace_back("batch", n, width);
      ferry::init::uniform(exec, batch.back(), -1, 1, 10);
    }
  }
  static std::vector<std::int64_t> drawn() {
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i * 37 % 50);
    return all;
  }
};

/// Lets the k-th allocation of rank 1 in `call(world, rank)` fail, for k = 1, 2, ... until it has no k-th. Rank
/// 1 then throws bad_alloc, the others peer_error or nothing; nobody waits for a deadline, and afterwards the
/// group does its work. The other ranks may have counted a step that rank 1 has not.
template <class Call>
int survive_every_failure(const char* what, const Call& call) {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    world here(ferry::communicator::threads(ranks, {.deadline = std::chrono::seconds(20)}));
    std::vector<std::string> said(ranks);
    bool failed = false;
    here.comm.run([&](int rank) {
      auto& mine = said[static_cast<std::size_t>(rank)];
      if (rank == 1) fail_allocation(k);
      try {
        call(here, rank);
      } catch (const ferry::peer_error&) {
        if (rank == 1) mine = "rank 1 was told of a failure of another rank";
      } catch (const std::bad_alloc&) {
        if (rank != 1) mine = "bad_alloc on a rank that lacks no memory";
      } catch (const ferry::bad_alloc&) {
        if (rank != 1) mine = "ferry::bad_alloc on a rank that lacks no memory";
      } catch (const std::exception& other) {
        mine = other.what();
      }
      if (rank == 1) failed = fail_allocation(0);
      try {
        here.comm.barrier();
        here.state.set_steps(5);
        call(here, rank);
      } catch (const std::exception& other) {
        mine += std::string(" afterwards: ") + other.what();
      }
    });
    for (const std::string& each : said) {
      INFO(what << ", allocation " << k);
      REQUIRE(each == "");
    }
    if (!failed) return failures;
    ++failures;
  }
}

}  // namespace

TEST_CASE("ranks survive that the k-th allocation of one of them fails", "[failing_heap][distributed]") {
  int failures = 0;
  const auto survive = [&](const char* what, const auto& call) {
    failures += survive_every_failure(what, call);
  };
  const auto own = [](world & of, int rank) -> auto& { return of.batch[static_cast<std::size_t>(rank)]; };
  survive("gather",
          [&](world& of, int rank) { ferry::gather(of.exec, of.table, of.indices, own(of, rank)).wait(); });
  survive("gather into a new tensor", [&](world& of, int) {
    static_cast<void>(ferry::gather<host>(of.exec, of.table, of.indices).get());
  });
  survive("scatter",
          [&](world& of, int rank) { ferry::scatter(of.exec, of.table, of.indices, own(of, rank)).wait(); });
  survive("scatter_add", [&](world& of, int rank) {
    ferry::scatter_add(of.exec, of.table, of.indices, own(of, rank)).wait();
  });
  survive("step", [&](world& of, int rank) {
    ferry::step(of.exec, of.adam, of.table, of.state, of.indices, own(of, rank)).wait();
  });
  survive("copy of an array", [&](world& of, int) { ferry::copy(of.exec, of.whole, of.table).wait(); });
  survive("copy into an array", [&](world& of, int rank) {
    ferry::copy(of.exec, of.table, rank == 1 ? of.whole : of.none).wait();
  });
  survive("copy of a sharded table",
          [&](world& of, int) { ferry::copy(of.exec, of.table, of.other).wait(); });
  survive("shared_tensor",
          [&](world& of, int) { const ferry::shared_tensor<float> shared("shared", of.comm, rows, width); });
  CHECK(failures > 100);
}

TEST_CASE("a load by ranks changes nothing where one of them lacks memory", "[failing_heap][distributed]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/a-folder-whose-name-has-more-than-thirty-letters";
  const auto contents = [](world& of, const std::vector<float>& plain) {
    std::vector<float> all = plain;
    const auto add = [&](const auto& array) {
      ferry::tensor<float, host> here("here", rows, width);
      ferry::copy(of.exec, array, here).wait();
      all.insert(all.end(), here.data(), here.data() + here.size());
    };
    add(of.table);
    add(of.other);
    for (int r = 0; r < ranks; ++r)
      for (int f = 0; f < of.state.shard(r).fields(); ++f) {
        const auto field = of.state.shard(r).field_ref(f);
        all.insert(all.end(), field.data, field.data + field.size());
      }
    all.push_back(static_cast<float>(of.state.steps()));
    return all;
  };
  const auto add_to = [](ferry::io::checkpoint& run, world& of, std::vector<float>& plain) {
    run.add("table", of.table);
    run.add("a table in blocks of rows", of.other);
    run.add("adam", of.adam, of.state);
    run.add("plain", plain);
  };
  const auto group = [] {
    return ferry::communicator::threads(ranks, {.deadline = std::chrono::seconds(20)});
  };
  std::vector<float> saved;
  {
    world of(group());
    std::vector<float> plain(500, 0.5f);
    ferry::init::uniform(of.exec, of.table, -1, 1, 17);
    ferry::init::uniform(of.exec, of.other, -1, 1, 18);
    of.state.set_steps(3);
    ferry::io::checkpoint run(path);
    add_to(run, of, plain);
    run.save();
    saved = contents(of, plain);
  }
  // By rank 1 inside of run, and by a thread that acts for all ranks.
  for (const bool by_ranks : {true, false}) {
    int failures = 0;
    for (std::int64_t k = 1;; ++k) {
      world here(group());
      std::vector<float> plain(500, 7.0f);
      here.state.set_steps(7);
      const auto before = contents(here, plain);
      ferry::io::checkpoint run(path);
      add_to(run, here, plain);
      std::vector<int> thrown(ranks);
      bool failed = false;
      const auto load = [&](int rank) {
        if (rank == 1) fail_allocation(k);
        try {
          run.load();
        } catch (const std::exception&) {
          thrown[static_cast<std::size_t>(rank)] = 1;
        }
        if (rank == 1) failed = fail_allocation(0);
      };
      if (by_ranks)
        here.comm.run(load);
      else
        load(1);
      INFO((by_ranks ? "by ranks" : "as a whole") << ", allocation " << k);
      REQUIRE((contents(here, plain) == (thrown[1] != 0 ? before : saved)));
      if (by_ranks) REQUIRE(thrown == std::vector<int>(ranks, thrown[1]));
      if (!failed) break;
      ++failures;
    }
    CHECK(failures > 50);
  }
}

TEST_CASE("a group is broken whatever its message lacks", "[failing_heap][distributed]") {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    const auto comm = ferry::communicator::threads(2, {.deadline = std::chrono::milliseconds(20)});
    std::atomic<bool> left{false};
    std::vector<int> thrown(2);
    bool failed = false;
    const auto meet = [&](int rank) {
      try {
        comm.barrier();
      } catch (const ferry::communication_error&) {
        thrown[static_cast<std::size_t>(rank)] = 1;
      } catch (const std::bad_alloc&) {
        thrown[static_cast<std::size_t>(rank)] = 2;
      }
    };
    comm.run([&](int rank) {
      if (rank == 1) {  // comes after the deadline of rank 0
        while (!left) std::this_thread::yield();
        return meet(rank);
      }
      fail_allocation(k);
      meet(rank);
      failed = fail_allocation(0);
      left = true;
    });
    INFO("allocation " << k);
    REQUIRE(thrown[0] != 0);
    REQUIRE(thrown[1] == 1);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 2);
}

}  // namespace ferry_test::failing_ranks_test
