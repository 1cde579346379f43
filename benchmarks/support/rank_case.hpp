// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session.hpp"
#include "tables.hpp"
#include "timing.hpp"

#include <ferry/distributed.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry_bench {

/// The numbers of devices of a run: those that were asked for, else 1, 2, 4 and so on, and all of them. A machine
/// with one device takes it twice, to show that everything runs.
inline std::vector<int> group_sizes(const options& chosen, int devices) {
  std::vector<int> sizes(chosen.devices.begin(), chosen.devices.end());
  if (!sizes.empty()) return sizes;
  const int count = std::max(devices, 2);
  for (int n = 1; n < count; n *= 2) sizes.push_back(n);
  sizes.push_back(count);
  return sizes;
}

inline std::vector<int> group_sizes(const session& run) {
  return group_sizes(run.chosen(), static_cast<int>(ferry::devices().size()));
}

/// The devices of a group: all in turn.
inline std::vector<int> device_ids(int ranks) {
  const auto count = static_cast<int>(ferry::devices().size());
  std::vector<int> ids;
  for (int r = 0; r < ranks; ++r) ids.push_back(r % count);
  return ids;
}

/// Random rows of the other ranks' shards of a table with sharding::cyclic and as many rows on each rank.
struct row_of_others {
  std::uint64_t seed;
  std::uint64_t rows_of_rank;
  std::uint64_t rank;
  std::uint64_t ranks;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    const std::uint64_t peers = ranks - 1;
    const std::uint64_t drawn =
        mix(mix(seed) + static_cast<std::uint64_t>(position)) % (rows_of_rank * peers);
    return static_cast<std::int64_t>(drawn / peers * ranks + (rank + 1 + drawn % peers) % ranks);
  }
};

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

/// The time of `work(rank, exec, call)` and its wait, where all ranks begin at the same time: that of the slowest
/// rank, by the host's clock. `work` returns a ticket or nothing; `call` counts up.
template <class Work>
timing together(const session& run, const ferry::communicator& comm, const Work& work) {
  using clock = std::chrono::steady_clock;
  const int ranks = comm.size(), warm_up = run.chosen().warm_up, repeats = run.chosen().repeats;
  std::vector<std::vector<double>> readings(static_cast<std::size_t>(ranks));
  std::atomic<int> arrivals{0};
  comm.run([&](int rank, const auto& exec) {
    for (int call = 0; call < warm_up + repeats; ++call) {
      exec.fence("ferry_bench::together");
      comm.barrier();
      // Threads wake up from the barrier one after the other, so they meet once more, awake.
      ++arrivals;
      const auto give_up = clock::now() + std::chrono::seconds(1);
      while (arrivals.load() < (call + 1) * ranks && clock::now() < give_up) continue;
      const auto begin = clock::now();
      if constexpr (std::is_void_v<decltype(work(rank, exec, call))>) {
        work(rank, exec, call);
        exec.fence("ferry_bench::together");
      } else {
        work(rank, exec, call).wait();
      }
      const double ms = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
      if (call >= warm_up) readings[static_cast<std::size_t>(rank)].push_back(ms);
    }
  });
  timing times;
  for (int i = 0; i < repeats; ++i) {
    double slowest = 0;
    for (const auto& list : readings) slowest = std::max(slowest, list[static_cast<std::size_t>(i)]);
    times.add(slowest);
  }
  return times;
}

/// A group of devices, and figures named ranks.<number of ranks>.<what>.
class rank_case {
 public:
  rank_case(session& run, int ranks) : run_(run), comm_(ferry::communicator::devices(device_ids(ranks))) {}

  [[nodiscard]] session& run() const { return run_; }
  [[nodiscard]] const ferry::communicator& comm() const { return comm_; }
  [[nodiscard]] int ranks() const { return comm_.size(); }
  [[nodiscard]] std::string name(const std::string& rest, int ranks) const {
    return "ranks." + std::to_string(ranks) + "." + rest;
  }
  [[nodiscard]] std::string name(const std::string& rest) const { return name(rest, ranks()); }
  /// The share of uniform random rows that other ranks have.
  [[nodiscard]] double share_of_others() const { return 1 - 1.0 / ranks(); }
  /// True if NCCL, which takes each device once, can serve the group.
  [[nodiscard]] bool has_devices() const {
    return static_cast<std::size_t>(ranks()) <= ferry::devices().size();
  }

  /// A batch for each rank, of index sets of formula_of(rank, seed).
  template <class FormulaOf>
  std::vector<rank_batch> batches_of(std::int64_t n, std::size_t rows, std::size_t width, bool planned,
                                     const FormulaOf& formula_of) {
    std::vector<rank_batch> result(static_cast<std::size_t>(ranks()));
    const auto count = static_cast<std::size_t>(run_.chosen().index_sets);
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = 0; i < result.size() * count; ++i) seeds.push_back(run_.fresh_seed());
    comm_.run([&](int rank, const auto& exec) {
      rank_batch& part = result[static_cast<std::size_t>(rank)];
      part.rows = batch_tensor("batch", comm_.device(rank), n, width);
      ferry::init::custom(exec, part.rows, poison_value{});
      for (std::size_t s = 0; s < count; ++s) {
        part.sets.emplace_back("indices", comm_.device(rank), n);
        ferry::init::custom(exec, part.sets[s],
                            formula_of(rank, seeds[static_cast<std::size_t>(rank) * count + s]));
        if (planned) part.plans.push_back(ferry::make_plan(exec, part.sets[s], rows));
      }
      exec.fence("ferry_bench::batches");
    });
    return result;
  }
  /// Index sets of Formula{seed, rows, more...} on each rank.
  template <class Formula, class... More>
  std::vector<rank_batch> batches(std::int64_t n, std::size_t rows, std::size_t width, bool planned,
                                  More... more) {
    return batches_of(n, rows, width, planned, [&](int, std::uint64_t seed) {
      return Formula{seed, rows, more...};
    });
  }

  /// Adds a figure; `bytes` are those of one rank.
  void add(const std::string& name, const facts& setting, const timing& time, double bytes, bool verified) {
    std::string ids;
    for (int r = 0; r < ranks(); ++r) ids += (r == 0 ? "" : ", ") + std::to_string(comm_.device(r).id);
    figure result;
    result.name = name;
    result.setting = facts{{"ranks", std::int64_t{ranks()}},
                           {"devices", ids},
                           {"clock", std::string("host, the slowest rank")}} +
                     setting;
    result.time = {time, time};
    result.bytes = bytes;
    result.counts = "payload of one rank";
    result.verified = verified;
    run_.results().add(result);
    if (!verified) run_.results().failed(name, "elements are wrong");
  }
  /// The ratio of the rates, or of the times where one has no rate; `share` of our bytes count.
  void compare(const std::string& ours, const std::string& theirs, double share = 1) {
    const figure* mine = run_.results().find(ours);
    const figure* reference = run_.results().find(theirs);
    if (mine == nullptr || reference == nullptr || mine->time.wall.median() <= 0) return;
    const bool rates = mine->bytes > 0 && reference->bytes > 0;
    run_.results().ratio(ours, theirs,
                         rates ? share * mine->gb_per_s() / reference->gb_per_s()
                               : reference->time.wall.median() / mine->time.wall.median());
  }

  /// Times gathers of all ranks, or of rank 0 alone, then checks one of each.
  template <class Gather>
  void time_gathers(const std::string& name, const facts& setting, std::vector<rank_batch>& batch,
                    bool concurrent, const Gather& gather) {
    const auto part = [&](int rank, const exec_space& exec, int call) {
      return concurrent || rank == 0 ? gather(rank, exec, call) : ferry::ticket();
    };
    const timing time = together(run_, comm_, part);
    std::vector<std::int64_t> wrong(batch.size(), 0);
    comm_.run([&](int rank, const auto& exec) {
      auto& mine = batch[static_cast<std::size_t>(rank)];
      ferry::init::custom(exec, mine.rows, poison_value{});
      part(rank, exec, 1).wait();
      if (concurrent || rank == 0) wrong[static_cast<std::size_t>(rank)] = wrong_rows_of(exec, mine);
    });
    std::int64_t sum = 0;
    for (const std::int64_t count : wrong) sum += count;
    const auto width = static_cast<std::int64_t>(batch[0].rows.width());
    add(name,
        setting + facts{{"n", static_cast<std::int64_t>(batch[0].rows.rows())}, {"row_bytes", 4 * width}},
        time, static_cast<double>(batch[0].rows.size() * sizeof(float)), sum == 0);
  }

  /// Elements of a batch that are not those of set(1) in a table filled by fill().
  template <class Exec>
  static std::int64_t wrong_rows_of(const Exec& exec, const rank_batch& batch) {
    const auto width = static_cast<std::int64_t>(batch.rows.width());
    return count_of(exec, "ferry_bench::check", static_cast<std::int64_t>(batch.rows.size()),
                    wrong_gathered{batch.rows.data(), batch.set(1).data(), element_value{width}});
  }

  /// Fills a table by its formula: by an instance of a rank, or outside of run().
  template <class Exec, class Table>
  void fill_by(const Exec& exec, Table& table) const {
    ferry::init::custom(exec, table, element_value{static_cast<std::int64_t>(table.width())});
    exec.fence("ferry_bench::fill");
  }
  template <class Table>
  void fill(Table& table) const {
    fill_by(run_.exec(), table);
  }

 private:
  session& run_;
  ferry::communicator comm_;
};

/// Calls work(group) for each number of devices.
template <class Work>
void for_each_group(session& run, const Work& work) {
  for (const int ranks : group_sizes(run)) {
    rank_case group(run, ranks);
    work(group);
  }
}

}  // namespace ferry_bench
