// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "baseline/nccl.hpp"
#include "support/tables.hpp"
#include "support/together.hpp"
#include "support/zipf.hpp"

#include <ferry/distributed.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Sharded tables on two devices, both working at the same time, next to the vendor's copies and to NCCL. Times
/// are those of a call and its wait on the slower rank. Results are checked against the tables' formulas; what
/// ranks must share bit by bit is the tests' affair.
namespace ferry_bench {
namespace {

using ferry::device_space;
using ferry::mapped_space;

/// Arrays of one rank: batches and index sets.
struct rank_batch {
  batch_tensor rows;
  std::vector<row_indices> sets;
  std::vector<ferry::row_plan> plans;

  [[nodiscard]] const row_indices& set(int call) const {
    return sets[static_cast<std::size_t>(call) % sets.size()];
  }
  [[nodiscard]] const ferry::row_plan& plan(int call) const {
    return plans[static_cast<std::size_t>(call) % plans.size()];
  }
};

class ranks_case {
 public:
  explicit ranks_case(session& run)
      : run_(run), comm_(ferry::communicator::devices({0, ferry::devices().size() > 1 ? 1 : 0})) {}

  [[nodiscard]] session& run() { return run_; }
  [[nodiscard]] const ferry::communicator& comm() const { return comm_; }

  /// A batch for each rank, of index sets of Formula{seed, rows...}.
  template <class Formula, class... More>
  std::vector<rank_batch> batches(std::int64_t n, std::size_t rows, std::size_t width, bool planned,
                                  More... more) {
    std::vector<rank_batch> result(2);
    for (int s = 0; s < run_.chosen().index_sets; ++s)
      for (auto& batch : result) batch.sets.emplace_back();
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = 0; i < 2 * result[0].sets.size(); ++i) seeds.push_back(run_.fresh_seed());
    comm_.run([&](int rank, const auto& exec) {
      rank_batch& part = result[static_cast<std::size_t>(rank)];
      part.rows = batch_tensor("batch", comm_.device(rank), n, width);
      ferry::init::custom(exec, part.rows, poison_value{});
      for (std::size_t s = 0; s < part.sets.size(); ++s) {
        part.sets[s] = row_indices("indices", comm_.device(rank), n);
        const auto seed = seeds[static_cast<std::size_t>(rank) * part.sets.size() + s];
        ferry::init::custom(exec, part.sets[s], Formula{seed, rows, more...});
        if (planned) part.plans.push_back(ferry::make_plan(exec, part.sets[s], rows));
      }
      exec.fence("ferry_bench::batches");
    });
    return result;
  }

  /// Adds a figure; `bytes` are those of one rank.
  void add(const std::string& name, const facts& setting, const timing& time, double bytes, bool verified) {
    figure result;
    result.name = name;
    result.setting =
        facts{{"devices", std::to_string(comm_.device(0).id) + ", " + std::to_string(comm_.device(1).id)},
              {"clock", std::string("host, the slowest rank")}} +
        setting;
    result.time = {time, time};
    result.bytes = bytes;
    result.counts = "payload of one rank";
    result.verified = verified;
    run_.results().add(result);
    if (!verified) run_.results().failed(name, "elements are wrong");
  }
  void compare(const std::string& ours, const std::string& theirs) {
    const figure* mine = run_.results().find(ours);
    const figure* reference = run_.results().find(theirs);
    if (mine == nullptr || reference == nullptr || mine->time.wall.median() <= 0) return;
    const bool rates = mine->bytes > 0 && reference->bytes > 0;
    run_.results().ratio(ours, theirs,
                         rates ? mine->gb_per_s() / reference->gb_per_s()
                               : reference->time.wall.median() / mine->time.wall.median());
  }

  /// Times gathers of both ranks, or of rank 0 alone, then checks one of each.
  template <class Gather>
  void time_gathers(const std::string& name, const facts& setting, std::vector<rank_batch>& batch,
                    bool two_way, const Gather& gather) {
    const auto width = static_cast<std::int64_t>(batch[0].rows.width());
    const auto part = [&](int rank, const exec_space& exec, int call) {
      return two_way || rank == 0 ? gather(rank, exec, call) : ferry::ticket();
    };
    const timing time = together(run_, comm_, part);
    std::vector<std::int64_t> wrong(2, 0);
    comm_.run([&](int rank, const auto& exec) {
      auto& batch_part = batch[static_cast<std::size_t>(rank)];
      ferry::init::custom(exec, batch_part.rows, poison_value{});
      part(rank, exec, 1).wait();
      if (two_way || rank == 0)
        wrong[static_cast<std::size_t>(rank)] =
            count_of(exec, "ferry_bench::check", static_cast<std::int64_t>(batch_part.rows.size()),
                     wrong_gathered{batch_part.rows.data(), batch_part.set(1).data(), element_value{width}});
    });
    add(name,
        setting + facts{{"n", static_cast<std::int64_t>(batch[0].rows.rows())}, {"row_bytes", 4 * width}},
        time, static_cast<double>(batch[0].rows.size() * sizeof(float)), wrong[0] + wrong[1] == 0);
  }

 private:
  session& run_;
  ferry::communicator comm_;
};

void fill(ranks_case& ranks, auto& table) {
  ferry::init::custom(ranks.run().exec(), table, element_value{static_cast<std::int64_t>(table.width())});
}

/// Copies between the devices: one way, and both ways at once.
void copies(ranks_case& ranks) {
  session& run = ranks.run();
  const auto count = static_cast<std::size_t>(run.chosen().ceiling_gib * 0x1p28);
  std::vector<batch_tensor> source, target;
  for (int r = 0; r < 2; ++r) {
    source.emplace_back("source", ranks.comm().device(r), count, 1);
    target.emplace_back("target", ranks.comm().device(r), count, 1);
  }
  ranks.comm().run([&](int rank, const auto& exec) {
    ferry::init::custom(exec, source[static_cast<std::size_t>(rank)], element_value{1});
    // ferry lets the devices reach each other's memory at the first copy.
    ferry::copy(exec, source[static_cast<std::size_t>(1 - rank)], target[static_cast<std::size_t>(rank)])
        .wait();
  });
  for (const bool two_way : {false, true}) {
    const timing time = together(run, ranks.comm(), [&](int rank, const exec_space& exec, int) {
      if (!two_way && rank != 0) return;
      baseline::copy(exec, target[static_cast<std::size_t>(rank)].data(),
                     source[static_cast<std::size_t>(1 - rank)].data(), count * sizeof(float));
    });
    ranks.add(two_way ? "ranks.memcpy.both" : "ranks.memcpy", {}, time,
              static_cast<double>(count * sizeof(float)), true);
  }
}

/// Rows of the other device alone, and of both alike.
void gathers(ranks_case& ranks) {
  session& run = ranks.run();
  auto sizes = run.chosen().rows_bytes;
  if (!run.chosen().quick) sizes.push_back(2048);
  for (const std::int64_t row_bytes : sizes) {
    const auto width = static_cast<std::size_t>(row_bytes / 4);
    const auto rows = run.device_table_bytes() / static_cast<std::size_t>(row_bytes);
    using one_owner = ferry::sharding::table_wise;
    ferry::sharded_table<float, device_space, one_owner> first("far", ranks.comm(), rows, width, {.rank = 1});
    ferry::sharded_table<float, device_space, one_owner> second("far", ranks.comm(), rows, width,
                                                                {.rank = 0});
    ferry::sharded_table<float, device_space> shared("shared", ranks.comm(), rows, width);
    fill(ranks, first);
    fill(ranks, second);
    fill(ranks, shared);
    for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
      const std::string size = bytes_text(row_bytes) + "." + std::to_string(n);
      auto any = ranks.batches<any_row>(n, rows, width, false);
      for (const bool two_way : {false, true}) {
        const std::string name = "ranks.gather.far." + size + (two_way ? ".both" : "");
        ranks.time_gathers(name, {}, any, two_way, [&](int rank, const exec_space& exec, int call) {
          auto& part = any[static_cast<std::size_t>(rank)];
          return ferry::gather(exec, rank == 0 ? first : second, part.set(call), part.rows,
                               ferry::path::peer{});
        });
        ranks.compare(name, two_way ? "ranks.memcpy.both" : "ranks.memcpy");
      }
      const auto from_shared = [&](const std::string& name, auto& batch, const auto& named,
                                   auto... policies) {
        ranks.time_gathers(name, {}, batch, true, [&, named](int rank, const exec_space& exec, int call) {
          auto& part = batch[static_cast<std::size_t>(rank)];
          return ferry::gather(exec, shared, named(part, call), part.rows, policies...);
        });
      };
      const auto by_indices = [](const rank_batch& part, int call) -> const auto& { return part.set(call); };
      const auto by_plan = [](const rank_batch& part, int call) -> const auto& { return part.plan(call); };
      const std::string peer = "ranks.gather.shared." + size;
      from_shared(peer, any, by_indices, ferry::path::peer{});
      ranks.compare(peer, "ranks.gather.far." + size + ".both");
      from_shared(peer + ".automatic", any, by_indices);
      ranks.compare(peer + ".automatic", peer);
      if (baseline::nccl_ranks::available() && ferry::devices().size() > 1) {
        baseline::nccl_ranks nccl({ranks.comm().device(0).id, ranks.comm().device(1).id}, n, row_bytes);
        const auto half_bytes = static_cast<std::size_t>(n / 2 * row_bytes);
        const std::string moved = "ranks.nccl.rows." + size, whole = "ranks.nccl.lookup." + size;
        ranks.add(
            moved, {},
            together(run, ranks.comm(),
                     [&](int rank, const exec_space& exec, int) { nccl.exchange(rank, exec, half_bytes); }),
            2 * static_cast<double>(half_bytes), true);
        ranks.time_gathers(whole, {}, any, true, [&](int rank, const exec_space& exec, int call) {
          auto& part = any[static_cast<std::size_t>(rank)];
          nccl.lookup(rank, exec, shared.shard(rank).data(), part.set(call).data(), part.rows.data(), n);
          exec.fence("ferry_bench::lookup");
          return ferry::ticket();
        });
        ranks.compare(peer, moved);
        ranks.compare(peer, whole);
      }
      auto popular = ranks.batches<zipf_row>(n, rows, width, true, std::uint64_t{7});
      from_shared(peer + ".zipf", popular, by_indices, ferry::path::peer{});
      from_shared(peer + ".zipf.plan", popular, by_plan, ferry::path::peer{});
      ranks.compare(peer + ".zipf.plan", peer + ".zipf");
    }
  }
}

/// Copies both ways over the link of one device, then over those of both devices at once: what steps on a mapped
/// table share.
void time_links(ranks_case& ranks, std::size_t count) {
  std::vector<batch_tensor> target;
  std::vector<std::unique_ptr<baseline::block>> source;
  std::vector<std::unique_ptr<baseline::two_way_copy>> copies(2);
  for (int r = 0; r < 2; ++r) {
    target.emplace_back("target", ranks.comm().device(r), 2 * count, 1);
    source.push_back(
        std::make_unique<baseline::block>(baseline::block::kind::locked, 2 * count * sizeof(float)));
  }
  ranks.comm().run(
      [&](int rank) { copies[static_cast<std::size_t>(rank)] = std::make_unique<baseline::two_way_copy>(); });
  for (const bool two_way : {false, true})
    ranks.add(two_way ? "ranks.link_both_ways.both" : "ranks.link_both_ways", {},
              together(ranks.run(), ranks.comm(),
                       [&](int rank, const exec_space& exec, int) {
                         if (!two_way && rank != 0) return;
                         const auto r = static_cast<std::size_t>(rank);
                         auto* const elements = static_cast<float*>(source[r]->data());
                         copies[r]->enqueue(exec, target[r].data(), elements, elements + count,
                                            target[r].data() + count, count * sizeof(float));
                       }),
              2 * static_cast<double>(count * sizeof(float)), true);
  ranks.compare("ranks.link_both_ways.both", "ranks.link_both_ways");
}

/// A table in host memory under both devices, next to both devices' copies at once.
void mapped(ranks_case& ranks) {
  session& run = ranks.run();
  const auto count = static_cast<std::size_t>(run.chosen().ceiling_gib * 0x1p28);
  {
    std::vector<batch_tensor> target;
    std::vector<std::unique_ptr<baseline::block>> source;
    for (int r = 0; r < 2; ++r) {
      target.emplace_back("target", ranks.comm().device(r), count, 1);
      source.push_back(
          std::make_unique<baseline::block>(baseline::block::kind::locked, count * sizeof(float)));
    }
    for (const bool two_way : {false, true})
      ranks.add(two_way ? "ranks.h2d.both" : "ranks.h2d", {},
                together(run, ranks.comm(),
                         [&](int rank, const exec_space& exec, int) {
                           if (!two_way && rank != 0) return;
                           baseline::copy(exec, target[static_cast<std::size_t>(rank)].data(),
                                          source[static_cast<std::size_t>(rank)]->data(),
                                          count * sizeof(float));
                         }),
                static_cast<double>(count * sizeof(float)), true);
  }
  time_links(ranks, count / 2);
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto width = static_cast<std::size_t>(row_bytes / 4);
    const auto rows = run.host_table_bytes() / static_cast<std::size_t>(row_bytes);
    ferry::sharded_table<float, mapped_space> table("mapped", ranks.comm(), rows, width);
    fill(ranks, table);
    const std::int64_t n = 8 * run.chosen().step_n;
    auto any = ranks.batches<any_row>(n, rows, width, false);
    const std::string name = "ranks.gather.mapped." + bytes_text(row_bytes);
    for (const bool two_way : {false, true}) {
      ranks.time_gathers(name + (two_way ? ".both" : ""), {}, any, two_way,
                         [&](int rank, const exec_space& exec, int call) {
                           auto& part = any[static_cast<std::size_t>(rank)];
                           return ferry::gather(exec, table, part.set(call), part.rows, ferry::path::peer{});
                         });
      ranks.compare(name + (two_way ? ".both" : ""), two_way ? "ranks.h2d.both" : "ranks.h2d");
    }
  }
}

/// Each rank brings n gradients: a step on a table of one device against one on two devices' table of twice the
/// rows. The ratio of the times is the weak scaling.
template <class Space>
void steps(ranks_case& ranks, std::int64_t n, std::int64_t rows) {
  session& run = ranks.run();
  const auto width = static_cast<std::size_t>(run.chosen().width);
  const ferry::optim::adam rule{.lr = 1e-3};
  const std::string size = std::string(Space::name) + "." + std::to_string(n);
  const facts setting{{"n", n}, {"rows_of_a_rank", rows}, {"width", static_cast<std::int64_t>(width)}};
  {
    auto batch = ranks.batches<any_row>(n, static_cast<std::size_t>(rows), width, false);
    ferry::tensor<float, Space> table("one", ranks.comm().device(0), rows, width);
    fill(ranks, table);
    auto state = ferry::optim::make_state(rule, table);
    auto& part = batch[0];
    ferry::init::custom(run.exec(), part.rows, element_value{static_cast<std::int64_t>(width)});
    ranks.add("ranks.step.one." + size, setting,
              together(run, ranks.comm(),
                       [&](int rank, const exec_space& exec, int call) {
                         return rank == 0 ? ferry::step(exec, rule, table, state, part.set(call), part.rows)
                                          : ferry::ticket();
                       }),
              0, true);
  }
  auto batch = ranks.batches<any_row>(n, static_cast<std::size_t>(2 * rows), width, false);
  ferry::sharded_table<float, Space> table("two", ranks.comm(), 2 * rows, width);
  fill(ranks, table);
  auto state = ferry::optim::make_state(rule, table);
  ranks.comm().run([&](int rank, const auto& exec) {
    ferry::init::custom(exec, batch[static_cast<std::size_t>(rank)].rows,
                        element_value{static_cast<std::int64_t>(width)});
  });
  ranks.add("ranks.step.two." + size, setting,
            together(run, ranks.comm(),
                     [&](int rank, const exec_space& exec, int call) {
                       auto& part = batch[static_cast<std::size_t>(rank)];
                       return ferry::step(exec, rule, table, state, part.set(call), part.rows);
                     }),
            0, true);
  ranks.compare("ranks.step.two." + size, "ranks.step.one." + size);
}

void all_steps(ranks_case& ranks) {
  const auto& chosen = ranks.run().chosen();
  steps<device_space>(ranks, chosen.step_n, chosen.step_rows);
  steps<device_space>(ranks, 8 * chosen.step_n, 4 * chosen.step_rows);
  steps<mapped_space>(ranks, chosen.step_n, 2 * chosen.step_rows);
}

void sums(ranks_case& ranks) {
  session& run = ranks.run();
  for (const std::int64_t mib : {1, 64}) {
    const std::int64_t count = run.chosen().quick ? 4096 * mib : mib << 18;
    std::vector<batch_tensor> arrays;
    for (int r = 0; r < 2; ++r) arrays.emplace_back("array", ranks.comm().device(r), count, 1);
    const auto start = [&] {
      ranks.comm().run([&](int rank, const auto& exec) {
        ferry::init::custom(exec, arrays[static_cast<std::size_t>(rank)], element_value{1});
        exec.fence("ferry_bench::sums");
      });
    };
    const double bytes = 4 * static_cast<double>(count);
    const std::string ordered = "ranks.all_reduce." + std::to_string(mib) + "MiB";
    start();
    ranks.add(ordered, {},
              together(run, ranks.comm(),
                       [&](int rank, const exec_space& exec, int) {
                         return ferry::all_reduce(exec, ranks.comm(), arrays[static_cast<std::size_t>(rank)]);
                       }),
              bytes, true);
    if (!baseline::nccl_ranks::available() || ferry::devices().size() < 2) continue;
    baseline::nccl_ranks nccl({ranks.comm().device(0).id, ranks.comm().device(1).id}, 1, 16);
    start();
    ranks.add(ordered + ".nccl", {},
              together(run, ranks.comm(),
                       [&](int rank, const exec_space& exec, int) {
                         nccl.all_reduce(rank, exec, arrays[static_cast<std::size_t>(rank)].data(), count);
                       }),
              bytes, true);
    ranks.compare(ordered, ordered + ".nccl");
  }
}

void all_cases(session& run) {
  ranks_case ranks_run(run);
  copies(ranks_run);
  gathers(ranks_run);
  all_steps(ranks_run);
  sums(ranks_run);
  mapped(ranks_run);
}

const registration every{"ranks", all_cases};

}  // namespace
}  // namespace ferry_bench
