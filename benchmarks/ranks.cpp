// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "baseline/nccl.hpp"
#include "support/rank_case.hpp"
#include "support/zipf.hpp"

#include <ferry/distributed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Gathers from tables over 1, 2, 4 ... devices that all work at the same time, next to the vendor's copies and to
/// NCCL. Times are those of a call and its wait on the slowest rank. Results are checked against the tables'
/// formulas; what ranks must share bit by bit is the tests' affair.
namespace ferry_bench {
namespace {

using ferry::device_space;

/// Memory of each rank for copies, and the copies from all other ranks into it, all at the same time.
class pulls {
 public:
  pulls(rank_case& group, std::size_t bytes) : group_(group), queues_(size()) {
    const auto count = bytes / sizeof(float);
    for (int r = 0; r < group.ranks(); ++r) {
      source_.emplace_back("source", group.comm().device(r), count, 1);
      target_.emplace_back("target", group.comm().device(r), count, 1);
    }
    group.comm().run([&](int rank, const auto& exec) {
      const auto mine = static_cast<std::size_t>(rank);
      queues_[mine] = std::make_unique<baseline::copies_at_once>(exec, group_.ranks());
      ferry::init::custom(exec, source_[mine], element_value{1});
      exec.fence("ferry_bench::pulls");
      group_.comm().barrier();
      // ferry lets the devices reach each other's memory at the first copy.
      for (std::size_t r = 0; r < size(); ++r) {
        auto target = target_[mine].first(1);
        ferry::copy(exec, source_[r].first(1), target).wait();
      }
    });
  }

  /// `bytes` bytes from each of the other ranks, and as many from the rank itself where `with_local`.
  void enqueue(int rank, const exec_space& exec, std::size_t bytes, bool with_local) {
    const auto mine = static_cast<std::size_t>(rank);
    std::vector<baseline::copies_at_once::part> parts;
    for (std::size_t k = with_local ? 0 : 1; k < size(); ++k) {
      const std::size_t source_rank = (mine + k) % size();
      parts.push_back({reinterpret_cast<char*>(target_[mine].data()) + k * bytes,
                       reinterpret_cast<const char*>(source_[source_rank].data()) + mine * bytes, bytes});
    }
    queues_[mine]->enqueue(exec, parts);
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(group_.ranks()); }

  rank_case& group_;
  std::vector<batch_tensor> source_, target_;
  std::vector<std::unique_ptr<baseline::copies_at_once>> queues_;
};

/// The rate of the links: into one device, and into all of them at once from all others.
void links(rank_case& group) {
  if (group.ranks() < 2) return;
  const auto peers = static_cast<std::size_t>(group.ranks() - 1);
  const auto part = static_cast<std::size_t>(group.run().chosen().ceiling_gib * 0x1p30) / peers / 4096 * 4096;
  pulls memory(group, part * (peers + 1));
  for (const bool concurrent : {false, true})
    group.add(group.name(concurrent ? "memcpy.all" : "memcpy"),
              {{"bytes_of_pair", static_cast<std::int64_t>(part)}},
              together(group.run(), group.comm(),
                       [&](int rank, const exec_space& exec, int) {
                         if (concurrent || rank == 0) memory.enqueue(rank, exec, part, false);
                       }),
              static_cast<double>(part * peers), true);
}

/// Rows of the other ranks alone, and of all ranks alike.
void gathers_of(rank_case& group, std::int64_t row_bytes) {
  session& run = group.run();
  const auto width = static_cast<std::size_t>(row_bytes / 4);
  const auto ranks = static_cast<std::size_t>(group.ranks());
  const auto rows_of_rank = run.device_table_bytes() / 2 / static_cast<std::size_t>(row_bytes);
  const auto rows = rows_of_rank * ranks;
  const std::vector<std::int64_t> sizes{1024, run.chosen().step_n, 8 * run.chosen().step_n};
  ferry::sharded_table<float, device_space> table("shared", group.comm(), rows, width);
  group.fill(table);
  const bool has_nccl = baseline::nccl_ranks::available() && ranks > 1 && group.has_devices();
  std::unique_ptr<baseline::nccl_ranks> nccl;
  if (has_nccl)
    nccl = std::make_unique<baseline::nccl_ranks>(device_ids(group.ranks()), sizes.back(), row_bytes);
  std::unique_ptr<pulls> memory;
  if (ranks > 1) memory = std::make_unique<pulls>(group, static_cast<std::size_t>(sizes.back() * row_bytes));
  for (const std::int64_t n : sizes) {
    const std::string size = bytes_text(row_bytes) + "." + std::to_string(n);
    const auto name = [&](const std::string& rest) { return group.name(rest); };
    const auto pair_bytes = static_cast<std::size_t>(n * row_bytes) / ranks /
                            static_cast<std::size_t>(row_bytes) * static_cast<std::size_t>(row_bytes);
    if (ranks > 1) {
      auto far = group.batches_of(n, rows, width, false, [&](int rank, std::uint64_t seed) {
        return row_of_others{seed, rows_of_rank, static_cast<std::uint64_t>(rank), ranks};
      });
      for (const bool concurrent : {false, true}) {
        const std::string figure = name("gather.far." + size + (concurrent ? ".all" : ""));
        group.time_gathers(figure, {}, far, concurrent, [&](int rank, const exec_space& exec, int call) {
          auto& part = far[static_cast<std::size_t>(rank)];
          return ferry::gather(exec, table, part.set(call), part.rows, ferry::path::peer{});
        });
        group.compare(figure, name(concurrent ? "memcpy.all" : "memcpy"));
      }
      if (ranks > 2)
        group.compare(name("gather.far." + size + ".all"), group.name("gather.far." + size + ".all", 2));
    }
    auto any = group.batches<any_row>(n, rows, width, false);
    const auto from_table = [&](const std::string& figure, auto& batch, const auto& named, auto... policies) {
      group.time_gathers(figure, {}, batch, true, [&, named](int rank, const exec_space& exec, int call) {
        auto& part = batch[static_cast<std::size_t>(rank)];
        return ferry::gather(exec, table, named(part, call), part.rows, policies...);
      });
    };
    const auto by_indices = [](const rank_batch& part, int call) -> const auto& { return part.set(call); };
    const auto by_plan = [](const rank_batch& part, int call) -> const auto& { return part.plan(call); };
    const std::string peer = name("gather.shared." + size);
    from_table(peer, any, by_indices, ferry::path::peer{});
    from_table(peer + ".automatic", any, by_indices);
    group.compare(peer + ".automatic", peer);
    if (ranks > 2) group.compare(peer, group.name("gather.shared." + size, 2));
    if (ranks > 1) {
      group.compare(peer, name("gather.far." + size + ".all"));
      // Of the link's rate the rows of other ranks count.
      group.compare(peer, name("memcpy.all"), group.share_of_others());
      const std::string copied = name("memcpy.rows." + size);
      group.add(copied, {{"n", n}, {"row_bytes", row_bytes}},
                together(run, group.comm(),
                         [&](int rank, const exec_space& exec, int) {
                           memory->enqueue(rank, exec, pair_bytes, true);
                         }),
                static_cast<double>(pair_bytes * ranks), true);
      group.compare(peer, copied);
    }
    if (has_nccl) {
      const std::string moved = name("nccl.rows." + size), whole = name("nccl.lookup." + size);
      group.add(
          moved, {{"n", n}, {"row_bytes", row_bytes}},
          together(run, group.comm(),
                   [&](int rank, const exec_space& exec, int) { nccl->exchange(rank, exec, pair_bytes); }),
          static_cast<double>(pair_bytes * ranks), true);
      group.time_gathers(whole, {}, any, true, [&](int rank, const exec_space& exec, int call) {
        auto& part = any[static_cast<std::size_t>(rank)];
        nccl->lookup(rank, exec, table.shard(rank).data(), part.set(call).data(), part.rows.data(), n);
        exec.fence("ferry_bench::lookup");
        return ferry::ticket();
      });
      group.compare(peer, moved);
      group.compare(peer, whole);
    }
    if (n < run.chosen().step_n) continue;
    auto popular = group.batches<zipf_row>(n, rows, width, true, std::uint64_t{7});
    from_table(peer + ".zipf", popular, by_indices, ferry::path::peer{});
    from_table(peer + ".zipf.plan", popular, by_plan, ferry::path::peer{});
    group.compare(peer + ".zipf.plan", peer + ".zipf");
  }
}

void gathers(session& run) {
  auto sizes = run.chosen().rows_bytes;
  if (!run.chosen().quick && run.chosen().devices.empty()) sizes.push_back(2048);
  for_each_group(run, [&](rank_case& group) {
    links(group);
    for (const std::int64_t row_bytes : sizes) gathers_of(group, row_bytes);
  });
}

const registration gather_cases{"ranks.gather", gathers};

}  // namespace
}  // namespace ferry_bench
