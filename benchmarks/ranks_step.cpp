// SPDX-License-Identifier: Apache-2.0
#include "baseline/nccl.hpp"
#include "support/rank_case.hpp"

#include <ferry/distributed.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Steps of adam on tables over 1, 2, 4 ... devices, and sums of dense arrays. Each rank brings n gradients and has as
/// many rows whatever the number of ranks, so the ratio of the times is the weak scaling.
namespace ferry_bench {
namespace {

using ferry::device_space;
using ferry::mapped_space;

const ferry::optim::adam rule{.lr = 1e-3};

void fill_gradients(rank_case& group, std::vector<rank_batch>& batch) {
  group.comm().run([&](int rank, const auto& exec) {
    auto& gradients = batch[static_cast<std::size_t>(rank)].rows;
    ferry::init::custom(exec, gradients, element_value{static_cast<std::int64_t>(gradients.width())});
    exec.fence("ferry_bench::gradients");
  });
}

template <class Space>
void steps(rank_case& group, std::int64_t n, std::int64_t rows_of_rank) {
  session& run = group.run();
  const auto width = static_cast<std::size_t>(run.chosen().width);
  const auto rows = static_cast<std::size_t>(rows_of_rank * group.ranks());
  const std::string size = std::string(Space::name) + "." + std::to_string(n);
  const facts setting{
      {"n", n}, {"rows_of_a_rank", rows_of_rank}, {"width", static_cast<std::int64_t>(width)}};
  auto batch = group.batches<any_row>(n, rows, width, false);
  fill_gradients(group, batch);
  if (group.ranks() == 1) {
    ferry::tensor<float, Space> table("one", group.comm().device(0), rows, width);
    group.fill(table);
    auto state = ferry::optim::make_state(rule, table);
    group.add(group.name("step.plain." + size), setting,
              together(run, group.comm(),
                       [&](int, const exec_space& exec, int call) {
                         return ferry::step(exec, rule, table, state, batch[0].set(call), batch[0].rows);
                       }),
              0, true);
  }
  const std::string name = "step." + size;
  ferry::sharded_table<float, Space> table("all", group.comm(), rows, width);
  group.fill(table);
  auto state = ferry::optim::make_state(rule, table);
  group.add(group.name(name), setting,
            together(run, group.comm(),
                     [&](int rank, const exec_space& exec, int call) {
                       auto& part = batch[static_cast<std::size_t>(rank)];
                       return ferry::step(exec, rule, table, state, part.set(call), part.rows);
                     }),
            0, true);
  if (group.ranks() > 1) group.compare(group.name(name), group.name("step.plain." + size, 1));
  if (group.ranks() > 2) group.compare(group.name(name), group.name(name, 2));
}

void all_steps(session& run) {
  const auto& chosen = run.chosen();
  for_each_group(run, [&](rank_case& group) {
    steps<device_space>(group, 1024, chosen.step_rows);
    steps<device_space>(group, chosen.step_n, chosen.step_rows);
    steps<device_space>(group, 8 * chosen.step_n, 4 * chosen.step_rows);
    steps<mapped_space>(group, chosen.step_n, 2 * chosen.step_rows);
  });
}

void sums(session& run) {
  for_each_group(run, [&](rank_case& group) {
    std::unique_ptr<baseline::nccl_ranks> nccl;
    if (baseline::nccl_ranks::available() && group.ranks() > 1 && group.has_devices())
      nccl = std::make_unique<baseline::nccl_ranks>(device_ids(group.ranks()), 1, 16);
    for (const std::int64_t mib : {1, 64}) {
      const std::int64_t count = run.chosen().quick ? 4096 * mib : mib << 18;
      std::vector<batch_tensor> arrays;
      for (int r = 0; r < group.ranks(); ++r) arrays.emplace_back("array", group.comm().device(r), count, 1);
      const auto start = [&] {
        group.comm().run([&](int rank, const auto& exec) {
          ferry::init::custom(exec, arrays[static_cast<std::size_t>(rank)], element_value{1});
          exec.fence("ferry_bench::sums");
        });
      };
      const double bytes = 4 * static_cast<double>(count);
      const std::string ordered = group.name("all_reduce." + std::to_string(mib) + "MiB");
      start();
      group.add(ordered, {},
                together(run, group.comm(),
                         [&](int rank, const exec_space& exec, int) {
                           return ferry::all_reduce(exec, group.comm(),
                                                    arrays[static_cast<std::size_t>(rank)]);
                         }),
                bytes, true);
      if (nccl == nullptr) continue;
      start();
      group.add(ordered + ".nccl", {},
                together(run, group.comm(),
                         [&](int rank, const exec_space& exec, int) {
                           nccl->all_reduce(rank, exec, arrays[static_cast<std::size_t>(rank)].data(), count);
                         }),
                bytes, true);
      group.compare(ordered, ordered + ".nccl");
    }
  });
}

const registration steps_of_all{"ranks.step", all_steps};
const registration sums_of_all{"ranks.all_reduce", sums};

}  // namespace
}  // namespace ferry_bench
