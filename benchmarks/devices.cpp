// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"
#include "support/rank_case.hpp"

#include <ferry/distributed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry_bench {
namespace {

facts setting_of(const ferry::communicator& comm, const std::string& table) {
  return {{"ranks", std::int64_t{comm.size()}}, {"table", table}};
}

template <class Call>
void time_payload(session& run, const std::string& name, const facts& setting, const index_sets& sets,
                  batch_tensor& batch, const Call& call) {
  constexpr int burst = 4;
  figure result;
  result.name = name;
  result.setting = setting + facts{{"n", static_cast<std::int64_t>(batch.rows())},
                                   {"row_bytes", static_cast<std::int64_t>(batch.width() * sizeof(float))},
                                   {"burst", std::int64_t{burst}}};
  result.bytes = static_cast<double>(batch.size() * sizeof(float));
  result.counts = "payload";
  result.time = measure(run, burst, call);
  ferry::init::custom(run.exec(), batch, poison_value{});
  call(1).wait();
  conclude(run, result, wrong_rows(run, batch, sets[1]));
}

void compare(session& run, const std::string& ours, const std::string& theirs) {
  const figure* mine = run.results().find(ours);
  const figure* reference = run.results().find(theirs);
  if (mine != nullptr && reference != nullptr && reference->gb_per_s() > 0)
    run.results().ratio(ours, theirs, mine->gb_per_s() / reference->gb_per_s());
}

/// Rows of random places, by one kernel of the first device: all of them of the last device (far), or of all
/// devices alike (shared). Next to them what DMA moves in order, and a plan.
template <class Index>
void time_tables(session& run, const ferry::communicator& comm, std::int64_t n, std::int64_t row_bytes) {
  const auto width = static_cast<std::size_t>(row_bytes / 4);
  const auto rows = run.device_table_bytes() / static_cast<std::size_t>(row_bytes);
  const auto sets = index_sets::make<Index>(run, n, rows);
  const std::string size = bytes_text(row_bytes) + "." + std::to_string(n);
  const std::string group = "peer." + std::to_string(comm.size()) + ".";
  batch_tensor batch("batch", n, width);
  const std::string memcpy = group + "memcpy." + size;
  {
    ferry::sharded_table<float, ferry::device_space, ferry::sharding::table_wise> far(
        "far", comm, rows, width, {.rank = comm.size() - 1});
    ferry::init::custom(run.exec(), far, element_value{static_cast<std::int64_t>(width)});
    figure moved;
    moved.name = memcpy;
    moved.setting = setting_of(comm, "far") + facts{{"n", n}, {"row_bytes", row_bytes}};
    moved.counts = "payload";
    const auto part = far.shard(comm.size() - 1).first(std::min(static_cast<std::size_t>(n), rows));
    auto target = batch.first(part.rows());
    moved.bytes = static_cast<double>(target.rows() * width * sizeof(float));
    moved.time = measure(run, 4, [&](int) { return ferry::copy(run.exec(), part, target); });
    moved.verified = true;  // time_payload checks what kernels read
    run.results().add(moved);
    time_payload(run, group + "gather.far." + size, setting_of(comm, "far"), sets, batch, [&](int call) {
      return ferry::gather(run.exec(), far, sets[call], batch, ferry::path::peer{});
    });
    compare(run, group + "gather.far." + size, memcpy);
    const plan_sets plans(run, sets, rows);
    time_payload(run, group + "gather.far.plan." + size, setting_of(comm, "far"), sets, batch, [&](int call) {
      return ferry::gather(run.exec(), far, plans[call], batch, ferry::path::peer{});
    });
    compare(run, group + "gather.far.plan." + size, group + "gather.far." + size);
  }
  ferry::sharded_table<float, ferry::device_space> shared("shared", comm, rows, width);
  ferry::init::custom(run.exec(), shared, element_value{static_cast<std::int64_t>(width)});
  time_payload(run, group + "gather.shared." + size, setting_of(comm, "shared"), sets, batch, [&](int call) {
    return ferry::gather(run.exec(), shared, sets[call], batch, ferry::path::peer{});
  });
  compare(run, group + "gather.shared." + size, group + "gather.far." + size);
}

void gather_peer(session& run) {
  for (const int ranks : group_sizes(run)) {
    if (ranks == 1) continue;
    const auto comm = ferry::communicator::devices(device_ids(ranks));
    for (const std::int64_t row_bytes : run.chosen().rows_bytes)
      for (const std::int64_t n : {run.chosen().step_n, run.chosen().device_n})
        time_tables<any_row>(run, comm, n, row_bytes);
  }
}

const registration peers{"peer.gather", gather_peer};

}  // namespace
}  // namespace ferry_bench
