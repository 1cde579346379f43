// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/rank_case.hpp"

#include <ferry/distributed.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Tables in host memory under 1, 2, 4 ... devices, next to the copies of all these devices at once: shards near their
/// devices, and one table that all devices read.
namespace ferry_bench {
namespace {

using ferry::mapped_space;

/// Copies from page-locked memory, and both ways over each device's link: by rank 0 alone, then by all at once.
void time_links(rank_case& group, std::size_t count) {
  std::vector<batch_tensor> target;
  std::vector<std::unique_ptr<baseline::block>> source;
  std::vector<std::unique_ptr<baseline::copies_at_once>> copies(static_cast<std::size_t>(group.ranks()));
  for (int r = 0; r < group.ranks(); ++r) {
    target.emplace_back("target", group.comm().device(r), count, 1);
    source.push_back(std::make_unique<baseline::block>(baseline::block::kind::locked, count * sizeof(float)));
  }
  group.comm().run([&](int rank, const auto& exec) {
    copies[static_cast<std::size_t>(rank)] = std::make_unique<baseline::copies_at_once>(exec, 2);
  });
  const std::size_t half = count / 2;
  for (const bool both_ways : {false, true}) {
    const std::string name = group.name(both_ways ? "link_both_ways" : "h2d");
    for (const bool concurrent : {false, true})
      group.add(name + (concurrent ? ".all" : ""), {},
                together(group.run(), group.comm(),
                         [&](int rank, const exec_space& exec, int) {
                           if (!concurrent && rank != 0) return;
                           const auto r = static_cast<std::size_t>(rank);
                           auto* const elements = static_cast<float*>(source[r]->data());
                           auto* const target_elements = target[r].data();
                           if (both_ways)
                             copies[r]->enqueue(
                                 exec, {{target_elements, elements, half * sizeof(float)},
                                        {elements + half, target_elements + half, half * sizeof(float)}});
                           else
                             copies[r]->enqueue(exec, {{target_elements, elements, count * sizeof(float)}});
                         }),
                static_cast<double>(count * sizeof(float)), true);
    group.compare(name + ".all", name);
  }
}

/// Gathers by rank 0 alone and by all ranks.
template <class Gather>
void time_table(rank_case& group, const std::string& name, std::vector<rank_batch>& batch,
                const Gather& gather) {
  for (const bool concurrent : {false, true}) {
    const std::string figure = name + (concurrent ? ".all" : "");
    group.time_gathers(figure, {}, batch, concurrent, gather);
    group.compare(figure, group.name(concurrent ? "h2d.all" : "h2d"));
  }
}

void mapped(session& run) {
  const std::int64_t n = 8 * run.chosen().step_n;
  for_each_group(run, [&](rank_case& group) {
    time_links(group, static_cast<std::size_t>(run.chosen().ceiling_gib * 0x1p28));
    for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
      const auto width = static_cast<std::size_t>(row_bytes / 4);
      const auto rows = run.host_table_bytes() / static_cast<std::size_t>(row_bytes);
      auto any = group.batches<any_row>(n, rows, width, false);
      {
        ferry::sharded_table<float, mapped_space> table("mapped", group.comm(), rows, width);
        group.fill(table);
        time_table(group, group.name("gather.mapped." + bytes_text(row_bytes)), any,
                   [&](int rank, const exec_space& exec, int call) {
                     auto& part = any[static_cast<std::size_t>(rank)];
                     return ferry::gather(exec, table, part.set(call), part.rows, ferry::path::peer{});
                   });
      }
      ferry::tensor<float, mapped_space> single("one", rows, width);
      group.fill(single);
      time_table(group, group.name("gather.mapped.one." + bytes_text(row_bytes)), any,
                 [&](int rank, const exec_space& exec, int call) {
                   auto& part = any[static_cast<std::size_t>(rank)];
                   return ferry::gather(exec, single, part.set(call), part.rows, ferry::path::direct{});
                 });
    }
  });
}

const registration mapped_cases{"ranks.mapped", mapped};

}  // namespace
}  // namespace ferry_bench
