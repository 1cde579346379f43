// SPDX-License-Identifier: Apache-2.0
#include "support/rank_case.hpp"
#include "support/scratch_folder.hpp"

#include <ferry/distributed.hpp>
#include <ferry/io.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A checkpoint that all devices save and half as many load, next to plain writes to the same disk.
namespace ferry_bench {
namespace {

using sharded = ferry::sharded_table<float, ferry::device_space>;
using clock = std::chrono::steady_clock;

constexpr ferry::communicator_options patient{.deadline = std::chrono::minutes(5)};
constexpr std::size_t checkpoint_width = 128;

/// The bytes a second that the disk takes from plain writes.
double disk_rate(session& run, const scratch_folder& folder, std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = mix(i);
  const double seconds =
      seconds_to_write(folder.path() + "/plain", reinterpret_cast<const char*>(words.data()), bytes,
                       ferry::detail::chunk_threads());
  ::unlink((folder.path() + "/plain").c_str());
  timing time;
  time.add(1e3 * seconds);
  figure result;
  result.name = "ranks.checkpoint.disk";
  result.setting = {{"gib", static_cast<double>(bytes) / 0x1p30}, {"folder", folder.path()}};
  result.time = {time, time};
  result.bytes = static_cast<double>(bytes);
  result.counts = "payload";
  result.verified = true;
  run.results().add(result);
  return static_cast<double>(bytes) / seconds;
}

/// Elements of random rows that are wrong on any rank.
std::int64_t wrong_rows_in(rank_case& group, const sharded& table) {
  auto batch = group.batches<any_row>(group.run().chosen().step_n, table.rows(), checkpoint_width, false);
  std::vector<std::int64_t> wrong(batch.size(), 0);
  group.comm().run([&](int rank, const auto& exec) {
    auto& mine = batch[static_cast<std::size_t>(rank)];
    ferry::gather(exec, table, mine.set(1), mine.rows).wait();
    wrong[static_cast<std::size_t>(rank)] = rank_case::wrong_rows_of(exec, mine);
  });
  std::int64_t sum = 0;
  for (const std::int64_t count : wrong) sum += count;
  return sum;
}

void checkpoint(session& run) {
  const auto sizes = group_sizes(run);
  const int savers = *std::max_element(sizes.begin(), sizes.end()), loaders = std::max(savers / 2, 1);
  const scratch_folder folder;
  const auto whole_size = run.chosen().checkpoint_gib.value_or(64) * 0x1p30;
  const double rate = disk_rate(
      run, folder, static_cast<std::size_t>(run.chosen().quick ? 0x1p20 : std::min(whole_size, 2 * 0x1p30)));
  // The disk has room and needs about a minute; the devices of those that load have room.
  const double limits[] = {whole_size, 0.9 * static_cast<double>(folder.room()), 65 * rate,
                           0.8 * static_cast<double>(free_device_bytes()) * loaders};
  const double bytes = *std::min_element(std::begin(limits), std::end(limits));
  const auto rows = static_cast<std::size_t>(bytes) / (checkpoint_width * 4) / 64 * 64;
  const double total = static_cast<double>(rows * checkpoint_width * 4);
  const facts setting{{"gib", total / 0x1p30}, {"folder", folder.path()}};
  const auto time_one = [&](rank_case& group, const std::string& name, const auto& work) {
    const auto begin = clock::now();
    group.comm().run(work);
    timing time;
    time.add(1e3 * seconds_since(begin));
    group.add("ranks.checkpoint." + name + "." + std::to_string(group.ranks()), setting, time, total, true);
  };
  {
    rank_case group(run, savers, patient);
    sharded table("table", group.comm(), rows, checkpoint_width);
    group.fill(table);
    ferry::io::checkpoint saving(folder.path() + "/run");
    saving.add("table", table);
    time_one(group, "save", [&] { saving.save(); });
  }
  ferry::trim();
  rank_case group(run, loaders, patient);
  sharded table("table", group.comm(), rows, checkpoint_width);
  ferry::init::custom(run.exec(), table, poison_value{});
  ferry::io::checkpoint loading(folder.path() + "/run");
  loading.add("table", table);
  time_one(group, "load", [&] { loading.load(); });
  if (const std::int64_t wrong = wrong_rows_in(group, table); wrong != 0)
    run.results().failed("ranks.checkpoint.load", std::to_string(wrong) + " elements are wrong");
  group.compare("ranks.checkpoint.save." + std::to_string(savers), "ranks.checkpoint.disk");
}

const registration checkpoint_cases{"ranks.checkpoint", checkpoint};

}  // namespace
}  // namespace ferry_bench
