// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "heap/heap.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <exception>
#include <new>

namespace ferry_test::failing_ranks_test {

constexpr std::int64_t rows = 60, n = 24;
constexpr int ranks = 3;

/// A group with two tables, and a batch for each rank.
struct world {
  ferry::communicator comm;
  exec_space exec;
  std::vector<std::int64_t> indices = drawn();
  ferry::sharded_table<float, host> table{"a table with a label of more than thirty letters", comm, rows,
                                          width};
  ferry::sharded_table<float, host, ferry::sharding::block> block_table{"the other table", comm, rows, width};
  ferry::tensor<float, host> whole{"whole", rows, width}, none{"none", 0, width};
  ferry::optim::adam adam{.lr = 1e-2};
  decltype(ferry::optim::make_state(adam, table)) state = ferry::optim::make_state(adam, table);
  std::vector<ferry::tensor<float, host>> batch;
  std::vector<std::vector<std::int64_t>> distinct{ranks};
  std::vector<std::optional<ferry::sharded_plan<exec_space>>> plans{ranks};

  explicit world(const ferry::communicator& group) : comm(group) {
    ferry::init::uniform(exec, table, -1, 1, 7);
    ferry::init::uniform(exec, block_table, -1, 1, 8);
    ferry::init::uniform(exec, whole, -1, 1, 9);
    for (int r = 0; r < ranks; ++r) {
      batch.emplace_back("batch", n, width);
      for (std::int64_t i = 0; i < 20; ++i) distinct[static_cast<std::size_t>(r)].push_back(r * 20 + i);
      ferry::init::uniform(exec, batch.back(), -1, 1, 10);
    }
  }
  static std::vector<std::int64_t> drawn() {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 37 % 50);
    return ids;
  }
};

/// Lets the k-th allocation of rank 1 in `call(world, rank)` fail, for k = 1, 2, ... until it has no k-th. Rank
/// 1 then throws bad_alloc, the others peer_error or nothing; nobody waits for a deadline, and afterwards the
/// group does its work. The other ranks may have counted a step that rank 1 has not.
template <class Call>
int survive_every_failure(const char* label, const Call& call) {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    world here(ferry::communicator::threads(ranks, {.deadline = std::chrono::seconds(20)}));
    std::vector<std::string> said(ranks);
    bool failed = false;
    here.comm.run([&](int rank) {
      auto& mine = said[static_cast<std::size_t>(rank)];
      here.plans[static_cast<std::size_t>(rank)] = ferry::make_plan(here.exec, here.indices, here.table);
      if (rank == 1) fail_allocation(k);
      try {
        call(here, rank);
      } catch (const ferry::peer_error&) {
        if (rank == 1) mine = "rank 1 was told of a failure of another rank";
      } catch (const std::bad_alloc&) {
        if (rank != 1) mine = "bad_alloc on a rank that lacks no memory";
      } catch (const ferry::bad_alloc&) {
        if (rank != 1) mine = "ferry::bad_alloc on a rank that lacks no memory";
      } catch (const std::exception& failure) {
        mine = failure.what();
      }
      if (rank == 1) failed = fail_allocation(0);
      try {
        here.comm.barrier();
        here.state.set_steps(5);
        call(here, rank);
      } catch (const std::exception& failure) {
        mine += std::string(" afterwards: ") + failure.what();
      }
    });
    for (const std::string& text : said) {
      INFO(label << ", allocation " << k);
      REQUIRE(text == "");
    }
    if (!failed) return failures;
    ++failures;
  }
}

TEST_CASE("ranks survive that the k-th allocation of one of them fails", "[failing_heap][distributed]") {
  int failures = 0;
  const auto survive = [&](const char* label, const auto& call) {
    failures += survive_every_failure(label, call);
  };
  const auto batch_of = [](world & of, int rank) -> auto& {
    return of.batch[static_cast<std::size_t>(rank)];
  };
  survive("gather", [&](world& kit, int rank) {
    ferry::gather(kit.exec, kit.table, kit.indices, batch_of(kit, rank)).wait();
  });
  survive("gather into a new tensor", [&](world& kit, int) {
    static_cast<void>(ferry::gather<host>(kit.exec, kit.table, kit.indices).get());
  });
  survive("scatter", [&](world& kit, int rank) {
    ferry::scatter(kit.exec, kit.table, kit.indices, batch_of(kit, rank)).wait();
  });
  survive("scatter_add", [&](world& kit, int rank) {
    ferry::scatter_add(kit.exec, kit.table, kit.indices, batch_of(kit, rank)).wait();
  });
  survive("step", [&](world& kit, int rank) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, batch_of(kit, rank)).wait();
  });
  const std::vector<std::int64_t> offsets{0, 3, 3};
  const auto bags_of = [](auto& array) { return array.first(3); };
  survive("scatter of rows named once", [&](world& kit, int rank) {
    ferry::scatter(kit.exec, kit.table, kit.distinct[static_cast<std::size_t>(rank)],
                   batch_of(kit, rank).first(20), ferry::duplicates::reject{})
        .wait();
  });
  survive("scatter_add by rank", [&](world& kit, int rank) {
    ferry::scatter_add(kit.exec, kit.table, kit.indices, batch_of(kit, rank), ferry::reduce::by_rank{})
        .wait();
  });
  survive("gather of each row once", [&](world& kit, int rank) {
    ferry::gather(kit.exec, kit.table, kit.indices, batch_of(kit, rank), ferry::path::exchange{}).wait();
  });
  survive("gather_bags", [&](world& kit, int rank) {
    auto pooled = bags_of(batch_of(kit, rank));
    ferry::gather_bags(kit.exec, kit.table, kit.indices, offsets, pooled, ferry::pooling::mean{}).wait();
    ferry::gather_bags(kit.exec, kit.table, kit.indices, offsets, pooled, ferry::pooling::mean{},
                       ferry::path::exchange{})
        .wait();
  });
  survive("step_bags", [&](world& kit, int rank) {
    ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, kit.indices, offsets,
                     bags_of(batch_of(kit, rank)), ferry::pooling::mean{}, ferry::bounds::skip{})
        .wait();
  });
  const auto plan_of = [](world & kit, int rank) -> auto& {
    return *kit.plans[static_cast<std::size_t>(rank)];
  };
  survive("make_plan",
          [&](world& kit, int) { static_cast<void>(ferry::make_plan(kit.exec, kit.indices, kit.table)); });
  survive("gather by a plan", [&](world& kit, int rank) {
    ferry::gather(kit.exec, kit.table, plan_of(kit, rank), batch_of(kit, rank)).wait();
  });
  survive("gather_bags by a plan", [&](world& kit, int rank) {
    auto pooled = bags_of(batch_of(kit, rank));
    ferry::gather_bags(kit.exec, kit.table, plan_of(kit, rank), offsets, pooled, ferry::path::exchange{})
        .wait();
  });
  survive("scatter by a plan", [&](world& kit, int rank) {
    ferry::scatter(kit.exec, kit.table, plan_of(kit, rank), batch_of(kit, rank)).wait();
  });
  survive("scatter_add by a plan and by rank", [&](world& kit, int rank) {
    ferry::scatter_add(kit.exec, kit.table, plan_of(kit, rank), batch_of(kit, rank), ferry::reduce::by_rank{})
        .wait();
  });
  survive("step by a plan", [&](world& kit, int rank) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, plan_of(kit, rank), batch_of(kit, rank),
                ferry::nonfinite::skip{})
        .wait();
  });
  survive("step_bags by a plan", [&](world& kit, int rank) {
    ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, plan_of(kit, rank), offsets,
                     bags_of(batch_of(kit, rank)), ferry::pooling::mean{})
        .wait();
  });
  survive("step_bags of maxima by a plan", [&](world& kit, int rank) {
    ferry::step_bags(kit.exec, kit.adam, kit.table, kit.state, plan_of(kit, rank), offsets,
                     bags_of(batch_of(kit, rank)), ferry::pooling::max{})
        .wait();
  });
  survive("copy of an array", [&](world& kit, int) { ferry::copy(kit.exec, kit.whole, kit.table).wait(); });
  survive("copy into an array", [&](world& kit, int rank) {
    ferry::copy(kit.exec, kit.table, rank == 1 ? kit.whole : kit.none).wait();
  });
  survive("copy of a sharded table",
          [&](world& kit, int) { ferry::copy(kit.exec, kit.table, kit.block_table).wait(); });
  survive("shared_tensor", [&](world& kit, int) {
    const ferry::shared_tensor<float> shared("shared", kit.comm, rows, width);
  });
  CHECK(failures > 100);
}

TEST_CASE("a load by ranks changes nothing where one of them lacks memory", "[failing_heap][distributed]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/a-folder-whose-name-has-more-than-thirty-letters";
  const auto contents = [](world& kit, const std::vector<float>& plain) {
    std::vector<float> content = plain;
    const auto add = [&](const auto& array) {
      ferry::tensor<float, host> host_copy("here", rows, width);
      ferry::copy(kit.exec, array, host_copy).wait();
      content.insert(content.end(), host_copy.data(), host_copy.data() + host_copy.size());
    };
    add(kit.table);
    add(kit.block_table);
    for (int r = 0; r < ranks; ++r)
      for (int f = 0; f < kit.state.shard(r).fields(); ++f) {
        const auto field = kit.state.shard(r).field_ref(f);
        content.insert(content.end(), field.data, field.data + field.size());
      }
    content.push_back(static_cast<float>(kit.state.steps()));
    return content;
  };
  const auto add_to = [](ferry::io::checkpoint& run, world& kit, std::vector<float>& plain) {
    run.add("table", kit.table);
    run.add("a table in blocks of rows", kit.block_table);
    run.add("adam", kit.adam, kit.state);
    run.add("plain", plain);
  };
  const auto group = [] {
    return ferry::communicator::threads(ranks, {.deadline = std::chrono::seconds(20)});
  };
  std::vector<float> saved;
  {
    world kit(group());
    std::vector<float> plain(500, 0.5f);
    ferry::init::uniform(kit.exec, kit.table, -1, 1, 17);
    ferry::init::uniform(kit.exec, kit.block_table, -1, 1, 18);
    kit.state.set_steps(3);
    ferry::io::checkpoint run(path);
    add_to(run, kit, plain);
    run.save();
    saved = contents(kit, plain);
  }
  // By rank 1 inside of run, and by a thread that acts for all ranks.
  for (const bool by_ranks : {true, false}) {
    int failures = 0;
    for (std::int64_t k = 1;; ++k) {
      world kit(group());
      std::vector<float> plain(500, 7.0f);
      kit.state.set_steps(7);
      const auto before = contents(kit, plain);
      ferry::io::checkpoint run(path);
      add_to(run, kit, plain);
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
        kit.comm.run(load);
      else
        load(1);
      INFO((by_ranks ? "by ranks" : "as a whole") << ", allocation " << k);
      REQUIRE((contents(kit, plain) == (thrown[1] != 0 ? before : saved)));
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
