// SPDX-License-Identifier: Apache-2.0
#include "support/rank_case.hpp"

#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Each verb of sharded tables once on 1, 2, 4 ... devices, with as many rows and positions on each rank whatever
/// their number, and the collective calls alone: the terms of the model in benchmarks/README.md. Rows that verbs
/// read or write are checked; sums and steps are the tests' affair.
namespace ferry_bench {
namespace {

using ferry::device_space;
using sharded = ferry::sharded_table<float, device_space>;

/// The first position of a bag.
struct bag_begin {
  std::int64_t length;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t bag, std::int64_t) const { return bag * length; }
};

class verbs {
 public:
  explicit verbs(rank_case& group)
      : group_(group),
        n_(group.run().chosen().step_n),
        width_(static_cast<std::size_t>(group.run().chosen().width)),
        rows_(static_cast<std::size_t>(group.run().chosen().step_rows * group.ranks())),
        table_("table", group.comm(), rows_, width_),
        batch_(group.batches<any_row>(n_, rows_, width_, true)) {
    group.fill(table_);
  }

  void all() {
    meetings();
    reads();
    writes();
    bags();
    whole_arrays();
    ordinary();
  }

 private:
  rank_batch& part(int rank) { return batch_[static_cast<std::size_t>(rank)]; }

  /// Times work(rank, exec, call); the ratio is the weak scaling.
  template <class Work>
  void time(const std::string& verb, double bytes, const Work& work) {
    const std::string name = group_.name("verb." + verb);
    group_.add(name, {{"n", n_}, {"row_bytes", static_cast<std::int64_t>(4 * width_)}},
               together(group_.run(), group_.comm(), work), bytes, true);
    if (group_.ranks() > 1) group_.compare(name, group_.name("verb." + verb, 1));
    if (group_.ranks() > 2) group_.compare(name, group_.name("verb." + verb, 2));
  }
  [[nodiscard]] double payload() const { return static_cast<double>(n_) * static_cast<double>(4 * width_); }

  /// Fails where a gather does not bring the rows of fill().
  void check_table(const std::string& verb) {
    std::vector<std::int64_t> wrong(batch_.size(), 0);
    group_.comm().run([&](int rank, const auto& exec) {
      auto& mine = part(rank);
      ferry::init::custom(exec, mine.rows, poison_value{});
      ferry::gather(exec, table_, mine.set(1), mine.rows).wait();
      wrong[static_cast<std::size_t>(rank)] = rank_case::wrong_rows_of(exec, mine);
    });
    for (const std::int64_t count : wrong)
      if (count != 0)
        group_.run().results().failed(group_.name("verb." + verb),
                                      std::to_string(count) + " elements are wrong");
  }

  void meetings() {
    const auto& comm = group_.comm();
    time("nothing", 0, [](int, const exec_space&, int) {});
    time("barrier", 0, [&](int, const exec_space&, int) { comm.barrier(); });
    time("all_gather", 0, [&](int rank, const exec_space&, int) { (void)comm.all_gather(rank); });
    // A copy within the device: a launch and its wait.
    time("local_copy", 1024 * 4 * static_cast<double>(width_), [&](int rank, const exec_space& exec, int) {
      auto& mine = part(rank);
      auto few = mine.rows.first(std::min<std::size_t>(1024, mine.rows.rows()));
      return ferry::copy(exec, table_.shard(rank).first(few.rows()), few);
    });
  }

  void reads() {
    group_.time_gathers(group_.name("verb.gather"), {}, batch_, true,
                        [&](int rank, const exec_space& exec, int call) {
                          return ferry::gather(exec, table_, part(rank).set(call), part(rank).rows);
                        });
    group_.time_gathers(group_.name("verb.gather.exchange"), {}, batch_, true,
                        [&](int rank, const exec_space& exec, int call) {
                          return ferry::gather(exec, table_, part(rank).plan(call), part(rank).rows,
                                               ferry::path::exchange{});
                        });
    for (const char* verb : {"verb.gather", "verb.gather.exchange"})
      if (group_.ranks() > 1) group_.compare(group_.name(verb), group_.name(verb, 1));
    time("gather.new", payload(), [&](int rank, const exec_space& exec, int call) {
      (void)ferry::gather<device_space>(exec, table_, part(rank).set(call)).get();
    });
    time("make_plan", 0, [&](int rank, const exec_space& exec, int call) {
      (void)ferry::make_plan(exec, part(rank).set(call), table_);
    });
    std::vector<std::vector<ferry::sharded_plan<exec_space>>> plans(static_cast<std::size_t>(group_.ranks()));
    make_plans(plans);
    group_.time_gathers(
        group_.name("verb.gather.plan"), {}, batch_, true, [&](int rank, const exec_space& exec, int call) {
          const auto& list = plans[static_cast<std::size_t>(rank)];
          return ferry::gather(exec, table_, list[static_cast<std::size_t>(call) % list.size()],
                               part(rank).rows);
        });
  }
  /// A plan for each index set of each rank.
  void make_plans(std::vector<std::vector<ferry::sharded_plan<exec_space>>>& plans) {
    group_.comm().run([&](int rank, const auto& exec) {
      for (const auto& set : part(rank).sets)
        plans[static_cast<std::size_t>(rank)].push_back(ferry::make_plan(exec, set, table_));
    });
  }

  void writes() {
    // Positions of one row have the same values, so that every order leaves the same row.
    std::vector<batch_tensor> values;
    for (int r = 0; r < group_.ranks(); ++r)
      values.emplace_back("values", group_.comm().device(r), n_, width_);
    group_.comm().run([&](int rank, const auto& exec) {
      ferry::gather(exec, table_, part(rank).set(1), values[static_cast<std::size_t>(rank)]).wait();
    });
    ferry::init::custom(group_.run().exec(), table_, poison_value{});
    time("scatter", payload(), [&](int rank, const exec_space& exec, int) {
      return ferry::scatter(exec, table_, part(rank).set(1), values[static_cast<std::size_t>(rank)]);
    });
    check_table("scatter");
    const auto gradients = [&](int rank) -> auto& { return values[static_cast<std::size_t>(rank)]; };
    time("scatter_add", payload(), [&](int rank, const exec_space& exec, int call) {
      return ferry::scatter_add(exec, table_, part(rank).set(call), gradients(rank));
    });
    std::vector<std::vector<ferry::sharded_plan<exec_space>>> plans(static_cast<std::size_t>(group_.ranks()));
    make_plans(plans);
    time("scatter_add.plan", payload(), [&](int rank, const exec_space& exec, int call) {
      const auto& list = plans[static_cast<std::size_t>(rank)];
      return ferry::scatter_add(exec, table_, list[static_cast<std::size_t>(call) % list.size()],
                                gradients(rank));
    });
    time("scatter_add.by_rank", payload(), [&](int rank, const exec_space& exec, int call) {
      return ferry::scatter_add(exec, table_, part(rank).plan(call), gradients(rank),
                                ferry::reduce::by_rank{});
    });
    const ferry::optim::adam adam{.lr = 1e-3};
    auto state = ferry::optim::make_state(adam, table_);
    time("step", payload(), [&](int rank, const exec_space& exec, int call) {
      return ferry::step(exec, adam, table_, state, part(rank).set(call), gradients(rank));
    });
    time("make_state", 0, [&](int, const exec_space&, int) { (void)ferry::optim::make_state(adam, table_); });
    auto late = ferry::optim::make_state(adam, table_);
    time("step.catch_up", payload(), [&](int rank, const exec_space& exec, int call) {
      return ferry::step(exec, adam, table_, late, part(rank).set(call), gradients(rank),
                         ferry::step_count::catch_up{});
    });
    time("catch_up", 0,
         [&](int, const exec_space& exec, int) { return ferry::catch_up(exec, adam, table_, late); });
    time("init.uniform", shard_bytes(),
         [&](int, const exec_space& exec, int) { ferry::init::uniform(exec, table_, -1, 1, 3); });
    group_.fill(table_);
  }

  void bags() {
    constexpr std::int64_t bag = 8;
    const std::int64_t count = n_ / bag;
    std::vector<batch_tensor> pooled;
    std::vector<row_indices> offsets;
    for (int r = 0; r < group_.ranks(); ++r) {
      pooled.emplace_back("pooled", group_.comm().device(r), count, width_);
      offsets.emplace_back("offsets", group_.comm().device(r), count);
    }
    group_.comm().run([&](int rank, const auto& exec) {
      ferry::init::custom(exec, offsets[static_cast<std::size_t>(rank)], bag_begin{bag});
      exec.fence("ferry_bench::offsets");
    });
    const ferry::optim::adam adam{.lr = 1e-3};
    auto state = ferry::optim::make_state(adam, table_);
    time("gather_bags", payload(), [&](int rank, const exec_space& exec, int call) {
      const auto r = static_cast<std::size_t>(rank);
      return ferry::gather_bags(exec, table_, part(rank).set(call), offsets[r], pooled[r],
                                ferry::pooling::mean{});
    });
    time("step_bags", payload(), [&](int rank, const exec_space& exec, int call) {
      const auto r = static_cast<std::size_t>(rank);
      return ferry::step_bags(exec, adam, table_, state, part(rank).set(call), offsets[r], pooled[r],
                              ferry::pooling::mean{});
    });
  }

  void whole_arrays() {
    std::vector<batch_tensor> whole, parts;
    const auto ranks = static_cast<std::size_t>(group_.ranks());
    for (int r = 0; r < group_.ranks(); ++r) {
      whole.emplace_back("whole", group_.comm().device(r), rows_, width_);
      parts.emplace_back("part", group_.comm().device(r), rows_ / ranks, width_);
    }
    group_.comm().run(
        [&](int rank, const auto& exec) { group_.fill_by(exec, whole[static_cast<std::size_t>(rank)]); });
    ferry::init::custom(group_.run().exec(), table_, poison_value{});
    time("copy.from_array", shard_bytes(), [&](int rank, const exec_space& exec, int) {
      return ferry::copy(exec, whole[static_cast<std::size_t>(rank)], table_);
    });
    check_table("copy.from_array");
    time("copy.to_array", shard_bytes() * static_cast<double>(ranks),
         [&](int rank, const exec_space& exec, int) {
           return ferry::copy(exec, table_, whole[static_cast<std::size_t>(rank)]);
         });
    ferry::sharded_table<float, device_space, ferry::sharding::block> second("other", group_.comm(), rows_,
                                                                             width_);
    time("copy.to_sharding", shard_bytes(),
         [&](int, const exec_space& exec, int) { return ferry::copy(exec, table_, second); });
    std::vector<ferry::tensor<float, ferry::pageable_space>> pageable;
    for (int r = 0; r < group_.ranks(); ++r) pageable.emplace_back("pageable", rows_, width_);
    time("copy.to_pageable", shard_bytes() * static_cast<double>(ranks),
         [&](int rank, const exec_space& exec, int) {
           return ferry::copy(exec, table_, pageable[static_cast<std::size_t>(rank)]);
         });
    ferry::init::custom(group_.run().exec(), table_, poison_value{});
    time("copy.from_pageable", shard_bytes(), [&](int rank, const exec_space& exec, int) {
      return ferry::copy(exec, pageable[static_cast<std::size_t>(rank)], table_);
    });
    check_table("copy.from_pageable");
    pageable.clear();
    ferry::init::custom(group_.run().exec(), table_, poison_value{});
    group_.comm().run([&](int, const auto& exec) { ferry::copy(exec, second, table_).wait(); });
    check_table("copy.to_sharding");
    time("replicate", shard_bytes(), [&](int rank, const exec_space& exec, int) {
      return ferry::replicate(exec, group_.comm(), parts[static_cast<std::size_t>(rank)]);
    });
    time("concatenate", shard_bytes() * static_cast<double>(ranks),
         [&](int rank, const exec_space& exec, int) {
           return ferry::concatenate(exec, group_.comm(), parts[static_cast<std::size_t>(rank)],
                                     whole[static_cast<std::size_t>(rank)]);
         });
    time("split", shard_bytes(), [&](int rank, const exec_space& exec, int) {
      return ferry::split(exec, group_.comm(), whole[static_cast<std::size_t>(rank)],
                          parts[static_cast<std::size_t>(rank)], 0);
    });
  }

  /// The verbs of an ordinary table on one device, with the rows and positions of all ranks: each device does
  /// them for itself.
  void ordinary() {
    const std::int64_t n = n_ * group_.ranks();
    constexpr std::int64_t bag = 8;
    std::vector<batch_tensor> tables, values, pooled;
    std::vector<row_indices> ids, offsets;
    const ferry::optim::adam adam{.lr = 1e-3};
    std::vector<decltype(ferry::optim::make_state(adam, tables.front()))> states;
    for (int r = 0; r < group_.ranks(); ++r) {
      const auto home = group_.comm().device(r);
      tables.emplace_back("ordinary", home, rows_, width_);
      values.emplace_back("values", home, n, width_);
      pooled.emplace_back("pooled", home, n / bag, width_);
      ids.emplace_back("ids", home, n);
      offsets.emplace_back("offsets", home, n / bag);
      states.push_back(ferry::optim::make_state(adam, tables.back()));
    }
    const std::uint64_t seed = group_.run().fresh_seed();
    group_.comm().run([&](int rank, const auto& exec) {
      const auto r = static_cast<std::size_t>(rank);
      group_.fill_by(exec, tables[r]);
      ferry::init::custom(exec, ids[r], any_row{seed, rows_});
      ferry::init::custom(exec, offsets[r], bag_begin{bag});
      exec.fence("ferry_bench::ordinary");
    });
    const double bytes = static_cast<double>(values.front().size() * sizeof(float));
    const auto one_device = [&](const char* verb, double payload_bytes, const auto& act) {
      time(std::string("ordinary.") + verb, payload_bytes,
           [&](int rank, const exec_space& exec, int) { return act(static_cast<std::size_t>(rank), exec); });
    };
    one_device("make_plan", 0, [&](std::size_t r, const exec_space& exec) {
      (void)ferry::make_plan(exec, ids[r], rows_);
      exec.fence("ferry_bench::planned");
    });
    one_device("gather", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::gather(exec, tables[r], ids[r], values[r]);
    });
    one_device("gather_bags", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::gather_bags(exec, tables[r], ids[r], offsets[r], pooled[r], ferry::pooling::mean{});
    });
    one_device("scatter", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::scatter(exec, tables[r], ids[r], values[r]);
    });
    one_device("scatter_add", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::scatter_add(exec, tables[r], ids[r], values[r]);
    });
    one_device("step", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::step(exec, adam, tables[r], states[r], ids[r], values[r]);
    });
    one_device("step_bags", bytes, [&](std::size_t r, const exec_space& exec) {
      return ferry::step_bags(exec, adam, tables[r], states[r], ids[r], offsets[r], pooled[r],
                              ferry::pooling::mean{});
    });
    for (const char* verb :
         {"make_plan", "gather", "gather_bags", "scatter", "scatter_add", "step", "step_bags"})
      group_.compare(group_.name(std::string("verb.") + verb),
                     group_.name(std::string("verb.ordinary.") + verb), group_.ranks());
  }

  [[nodiscard]] double shard_bytes() const {
    return static_cast<double>(rows_ * width_ * sizeof(float)) / group_.ranks();
  }

  rank_case& group_;
  std::int64_t n_;
  std::size_t width_, rows_;
  sharded table_;
  std::vector<rank_batch> batch_;
};

void all_verbs(session& run) {
  for_each_group(run, [](rank_case& group) { verbs(group).all(); });
}

const registration verbs_cases{"ranks.verbs", all_verbs};

}  // namespace
}  // namespace ferry_bench
